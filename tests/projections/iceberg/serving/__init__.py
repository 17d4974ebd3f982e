"""Tests of tables that engines own, without a server."""

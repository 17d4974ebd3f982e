"""Tests of Paimon tables that engines own."""

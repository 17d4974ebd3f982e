"""What a writer needs unchanged, what others changed, and how that is told.

Others may import:

- `touched`: what the commits of others did, for all who ask.
- `conflicts`: what both wanted, and its message.

Inside: `cells` are what an event sets and what it needs.
"""

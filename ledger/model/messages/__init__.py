"""What messages and notebooks show of what somebody gave.

Others may import:

- `excerpt`: a value, never long.
- `similar`: what was meant by a name that is none.
- `credentials`: what none of them shows.
"""

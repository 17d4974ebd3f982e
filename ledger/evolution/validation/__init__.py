"""What holds for a schema as a whole, by Paimon's rules; one file a theme.

Others may import:
    `whole`        every rule, in Paimon's order
"""

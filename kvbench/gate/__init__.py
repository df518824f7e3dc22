"""A comparison x a policy -> one verdict that a pipeline can stand on."""

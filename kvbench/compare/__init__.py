"""Two or more measured runs -> what differs between them, and what may be concluded of it.

``policy`` reads what counts as a difference; ``aspects`` tells what the runs were; ``join`` pairs
their numbers; ``judge`` decides; ``winners`` names the best drive of a role where there is one.
"""

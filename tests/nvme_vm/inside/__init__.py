"""What runs in the guest: scenarios that do something to a drive and write down what kvbench says.

Nothing here judges.  The tests beside this folder run on the host and read what was written down.
"""

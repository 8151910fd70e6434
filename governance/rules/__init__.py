"""The rules, as functions of data: no clock, no database, no randomness.

Workflow code and the services call the same functions; what they are told decides alone.
"""

"""Checks of the repository itself; not part of the distribution's packages."""

"""Samples: run from a checkout, `python -m samples.payment.demo`."""

"""What of the site is made from code, records and notebooks while it is built (`make docs`)."""

"""Rules about the comments that hide other rules' findings."""

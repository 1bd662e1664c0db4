"""What scripts/fuzz.py is made of: samples, damage, processes to run them in, and a judge of what comes out."""

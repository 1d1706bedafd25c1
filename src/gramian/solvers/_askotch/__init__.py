"""What ASkotch is made of: blocks and their inverses, the momentum, and when it goes back."""

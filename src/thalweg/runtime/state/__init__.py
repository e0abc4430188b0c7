"""What the engine remembers between epochs, and how it is written down."""

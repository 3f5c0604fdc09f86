"""What `steelyard collect` and `steelyard serve` do: the server, who may ask it, and receiving spans."""

"""What the words of a sentence are: stems, weights, names, numbers with units."""

"""Text in and out: words and gaps of an Arrow string batch, and the policy of which words are drawn."""

"""What the documentation says: examples, commands, links, tables, figures, messages."""

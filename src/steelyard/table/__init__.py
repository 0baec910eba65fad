"""From a user's table to codes: columns, schema, encoder, discretizers."""

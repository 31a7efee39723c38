"""State in PostgreSQL, through psycopg 3: one function call a decision."""

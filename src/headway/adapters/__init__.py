"""Web frameworks, gRPC and Celery: a request becomes attributes, and a decision what ``presentation`` made of it."""

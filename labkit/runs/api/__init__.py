"""Agent runs over HTTP: who may come in, the routes, the streams of events, and the page."""

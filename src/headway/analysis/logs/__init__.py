"""Access logs in every format that servers, proxies and exports write, as blocks of requests, column by column."""

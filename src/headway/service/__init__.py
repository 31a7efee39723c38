"""``headway serve``: a policy file's decisions over HTTP, for programs that are not Python."""

// a file

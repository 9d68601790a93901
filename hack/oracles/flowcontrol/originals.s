// Empty: allows declarations without a body (see originals.go).

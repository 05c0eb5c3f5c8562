/* The library has no interface: it is preloaded. */

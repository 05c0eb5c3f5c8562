// Nothing to call: linking is enough. See TestProcess.c.

// Nothing to call: linking is enough. See CLLTestProcess.c.

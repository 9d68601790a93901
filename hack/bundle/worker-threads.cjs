// Stands for Node's `worker_threads`, of which pino asks one thing: loading it and what it needs takes milliseconds.
exports.isMainThread = true;

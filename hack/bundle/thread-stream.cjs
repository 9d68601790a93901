// Stands for `thread-stream`, which pino loads for transports in worker threads; there are none.
module.exports = class ThreadStream {
  constructor() {
    throw new Error("log transports in worker threads are not part of this bundle");
  }
};

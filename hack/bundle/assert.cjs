// Stands for Node's `assert` where only the bare function is used: the whole of it takes milliseconds to load.
module.exports = function assert(value, message) {
  if (!value) throw new Error(message ?? "assertion failed");
};

// Stands for the package `prom-client` in a bundle without its cluster, push gateway and default metrics parts.
exports.Registry = require("prom-client/lib/registry.js");
exports.Counter = require("prom-client/lib/counter.js");
exports.Gauge = require("prom-client/lib/gauge.js");
exports.Histogram = require("prom-client/lib/histogram.js");

// Stands for the package `undici` in a bundle that needs nothing of it but `Client`: a tenth of the code to load.
exports.Client = require("undici/lib/dispatcher/client.js");

/**
 * Has to be imported before anything imports pepr: Pepr decides once, when it is loaded, what its chains register. Mode `dev`
 * is the only one in which admission and watch chains both count in one process; nothing else depends on it. `pepr build`
 * sets its own mode.
 */
process.env["PEPR_MODE"] ??= "dev";
delete process.env["PEPR_WATCH_MODE"];

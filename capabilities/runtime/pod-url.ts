/** Where a pod answers at a port and path; IPv6 addresses stand in brackets. */
export function podUrl(ip: string, port: number, path: string): string {
  const host = ip.includes(":") ? `[${ip}]` : ip;
  return `http://${host}:${port}${path}`;
}

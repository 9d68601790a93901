/** Waits until `check` holds, looking every few milliseconds; throws its last failure after `timeoutMs`. */
export async function eventually(check: () => void | Promise<void>, timeoutMs = 5000): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}

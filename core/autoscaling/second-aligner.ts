/**
 * Puts reports that come once a second into consecutive seconds of the receiver, whatever the sender's clock says and
 * however the arrival jitters: without it, two reports that arrive at 10.001 s and 10.999 s would both count for second 10
 * and none for 11.
 *
 * Mutable, one per source. The anchor moves to the present when a report would fall into the future (the first one was
 * slow to arrive) or lags by more than LAG_MS (the sender paused, or its clock was set).
 */
const LAG_MS = 2000;

export class SecondAligner {
  #senderMs: number;
  #receiverMs: number;

  constructor(senderMs: number, receivedMs: number) {
    this.#senderMs = senderMs;
    this.#receiverMs = receivedMs;
  }

  /** The receiver's time to record a report under, never after `receivedMs`. */
  align(senderMs: number, receivedMs: number): number {
    const alignedMs = this.#receiverMs + Math.round((senderMs - this.#senderMs) / 1000) * 1000;
    if (alignedMs <= receivedMs && receivedMs - alignedMs <= LAG_MS) return alignedMs;
    this.#senderMs = senderMs;
    this.#receiverMs = receivedMs;
    return receivedMs;
  }
}

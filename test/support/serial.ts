import { connect, type Socket } from 'node:net';

/** Connects to the serial port of a guest; `null`: nobody listens there yet. */
export function connectSerial(
  path: string,
  onPrinted: (text: string) => void,
): Promise<Socket | null> {
  return new Promise((resolve) => {
    const serial = connect({ path });
    serial.on('data', (chunk) => {
      onPrinted(chunk.toString('latin1'));
    });
    serial.once('connect', () => {
      resolve(serial);
    });
    serial.on('error', () => {
      resolve(null);
    });
  });
}

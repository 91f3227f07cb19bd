// A proxy between a page and the server.
import net from 'node:net';

/** A way to the server that can be cut; it notes the requests' first lines. */
export async function startProxy(server) {
  const { hostname, port } = new URL(server);
  const pairs = new Set();
  const asked = [];
  const listener = net.createServer((client) => {
    const upstream = net.connect(Number(port), hostname);
    const pair = [client, upstream];
    pairs.add(pair);
    client.on('data', (data) => asked.push(...(data.toString('latin1').match(/^(?:GET|POST|DELETE) \S+/gm) ?? [])));
    for (const socket of pair) socket.on('error', () => {}).on('close', () => pairs.delete(pair));
    // What the server has said is still to arrive; what the browser does not want any more need not.
    upstream.on('close', () => client.end());
    client.on('close', () => upstream.destroy());
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${listener.address().port}`,
    asked,
    cut: () => [...pairs].flat().forEach((socket) => socket.destroy()),
    stop: () => {
      listener.close();
      [...pairs].flat().forEach((socket) => socket.destroy());
    },
  };
}

// Answers SQL about a trace with Perfetto's own engine: node perfetto_query.js ENGINE-FOLDER TRACE SQL...; prints one JSON array a query.
'use strict';

const fs = require('fs');
const path = require('path');
const { MessageChannel } = require('worker_threads');

// TraceProcessorRpc (protos/perfetto/trace_processor/trace_processor.proto): numbers of methods and fields.
const METHOD = { append: 1, finalize: 2, query: 3 };
const RPC = { stream: 1, sequence: 1, request: 2, fatal: 5, append: 101, query: 103, result: 203 };
const RESULT = { columns: 1, error: 2, batch: 3 };
const BATCH = { cells: 1, varints: 2, floats: 3, strings: 5, last: 6 };
const CELL = { null: 1, varint: 2, float: 3, string: 4 };
const CHUNK_BYTES = 1 << 20;
const START_TIMEOUT_MS = 60000;

// ---- protobuf ---------------------------------------------------------------------------------------------------------------
function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    if (at >= buffer.length) return null;
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (!(byte & 128)) return { value, at };
  }
}

function* fields(buffer) {
  for (let at = 0; at < buffer.length;) {
    const tag = readVarint(buffer, at);
    const field = Number(tag.value >> 3n);
    at = tag.at;
    switch (Number(tag.value & 7n)) {
      case 0: { const read = readVarint(buffer, at); at = read.at; yield [field, read.value]; break; }
      case 1: yield [field, buffer.subarray(at, at + 8)]; at += 8; break;
      case 2: {
        const length = readVarint(buffer, at);
        at = length.at + Number(length.value);
        yield [field, buffer.subarray(length.at, at)];
        break;
      }
      default: throw new Error('the engine answered in a wire type that is not known here');
    }
  }
}

// ---- the engine, which expects to be a worker of a page ---------------------------------------------------------------------
function startEngine(folder) {
  const read = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));
  const scope = { location: { href: 'file:///engine/' }, navigator: { hardwareConcurrency: 1 }, onmessage: null };
  const fetch = async (url) => new Response(read(url), { status: 200, headers: { 'Content-Type': 'application/wasm' } });
  function Request() {
    this.open = (method, url) => { this.url = url; };
    this.send = () => {
      const content = read(this.url);
      this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
      this.status = 200;
      if (this.onload) this.onload();
    };
  }
  const names = ['self', 'WorkerGlobalScope', 'importScripts', 'fetch', 'location', 'XMLHttpRequest', 'process', 'require', 'window', 'document'];
  const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
  new Function(...names, bundle)(scope, function WorkerGlobalScope() {}, () => {}, fetch, scope.location, Request);
  return scope;
}

class Engine {
  constructor(port) {
    this.port = port;
    this.sequence = 0;
    this.received = Buffer.alloc(0);
    this.waiting = [];
    port.on('message', (part) => this.take(Buffer.from(part)));
  }

  take(part) {
    this.received = Buffer.concat([this.received, part]);
    for (;;) {
      const length = readVarint(this.received, 1);
      if (length === null || this.received.length < length.at + Number(length.value)) return;
      const end = length.at + Number(length.value);
      const message = this.received.subarray(length.at, end);
      this.received = this.received.subarray(end);
      if (this.waiting.length && this.waiting[0](message)) this.waiting.shift();
    }
  }

  // Sends a request; `done` sees each answer until it returns something.
  call(method, payload, done) {
    const request = Buffer.concat([number(RPC.sequence, ++this.sequence), number(RPC.request, method), payload]);
    return new Promise((resolve) => {
      this.waiting.push((message) => {
        const result = done(message);
        if (result === undefined) return false;
        resolve(result);
        return true;
      });
      this.port.postMessage(new Uint8Array(bytes(RPC.stream, request)));
    });
  }

  async load(trace) {
    for (let at = 0; at < trace.length; at += CHUNK_BYTES) {
      await this.call(METHOD.append, bytes(RPC.append, trace.subarray(at, at + CHUNK_BYTES)), () => true);
    }
    await this.call(METHOD.finalize, Buffer.alloc(0), () => true);
  }

  async query(sql) {
    const rows = { columns: [], rows: [], error: '' };
    await this.call(METHOD.query, bytes(RPC.query, bytes(1, Buffer.from(sql))), (message) => {
      let last = false;
      for (const [field, value] of fields(message)) {
        if (field === RPC.result) last = readResult(value, rows) || last;
      }
      return rows.error || last ? true : undefined;
    });
    if (rows.error) throw new Error(rows.error.split('\n').slice(-2).join(' '));
    return rows.rows.map((row) => Object.fromEntries(row.map((value, i) => [rows.columns[i], value])));
  }
}

function readResult(result, rows) {
  let last = false;
  for (const [field, value] of fields(result)) {
    if (field === RESULT.columns) rows.columns.push(value.toString());
    if (field === RESULT.error) rows.error = value.toString();
    if (field === RESULT.batch) last = readBatch(value, rows);
  }
  return last;
}

function readBatch(batch, rows) {
  let cells = [];
  const values = { varints: [], floats: [], strings: [] };
  let last = false;
  for (const [field, value] of fields(batch)) {
    if (field === BATCH.cells) cells = [...value];
    if (field === BATCH.varints) {
      for (let at = 0; at < value.length;) {
        const read = readVarint(value, at);
        values.varints.push(Number(BigInt.asIntN(64, read.value)));
        at = read.at;
      }
    }
    if (field === BATCH.floats) for (let at = 0; at < value.length; at += 8) values.floats.push(value.readDoubleLE(at));
    if (field === BATCH.strings) values.strings = value.toString().split('\0');
    if (field === BATCH.last) last = Boolean(value);
  }
  let row = [];
  for (const cell of cells) {
    if (cell === CELL.null) row.push(null);
    else if (cell === CELL.varint) row.push(values.varints.shift());
    else if (cell === CELL.float) row.push(values.floats.shift());
    else if (cell === CELL.string) row.push(values.strings.shift());
    else throw new Error(`a cell of type ${cell}`);
    if (row.length === rows.columns.length) { rows.rows.push(row); row = []; }
  }
  return last;
}

async function main([folder, file, ...queries]) {
  const scope = startEngine(folder);
  // The bundle sets its handler once it has looked around.
  const start = Date.now();
  while (!scope.onmessage) {
    if (Date.now() - start > START_TIMEOUT_MS) throw new Error('the engine did not start');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { port1, port2 } = new MessageChannel();
  scope.onmessage({ data: port2 });
  const engine = new Engine(port1);
  await engine.load(fs.readFileSync(file));
  for (const sql of queries) console.log(JSON.stringify(await engine.query(sql)));
  process.exit(0);
}

main(process.argv.slice(2)).catch((error) => { console.error(String(error && error.message || error)); process.exit(1); });

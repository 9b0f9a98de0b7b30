// The Node driver as a puppet: carries out the steps that it reads, a line of Extended JSON each, and answers with a line
// each. The steps are told in ../scenario_test.go, the same to every client.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { BSON, MongoClient, MongoBulkWriteError, ReadPreference } from 'mongodb';

const { version } = createRequire(import.meta.url)('mongodb/package.json');
const client = new MongoClient(process.argv[2], { promoteLongs: false });
let topology;
client.on('topologyDescriptionChanged', (e) => { topology = e.newDescription; });

const db = client.db('interop');
const plain = (n) => Number(n);

function reading(step) {
  const told = step.readPreference;
  return told ? { readPreference: new ReadPreference(told.mode, told.tags) } : {};
}

function pick(step, ...names) {
  return Object.fromEntries(names.filter((n) => n in step).map((n) => [n, step[n]]));
}

const numbers = (options) => Object.fromEntries(Object.entries(options).map(([k, v]) => [k, v?._bsontype === 'Int32' ? v.valueOf() : v]));
const updated = (r) => ({ matched: plain(r.matchedCount), modified: plain(r.modifiedCount), upserted: r.upsertedId ?? null });
const extras = (step) => pick(step, 'upsert', 'arrayFilters');

function membersOfKind(kind) {
  return [...topology.servers.values()].filter((s) => s.type === kind).map((s) => s.address).sort();
}

const ops = {
  async members() {
    await client.db('admin').command({ ping: 1 });
    return { primary: membersOfKind('RSPrimary')[0] ?? null, secondaries: membersOfKind('RSSecondary') };
  },
  command: (c, step) => client.db(step.db).command(step.command, reading(step)),
  insertOne: async (c, step) => (await c.insertOne(step.document)).insertedId,
  insertMany: async (c, step) => plain((await c.insertMany(step.documents, pick(step, 'ordered'))).insertedCount),
  find: (c, step) => c.find(step.filter ?? {}, { ...numbers(pick(step, 'sort', 'projection', 'skip', 'limit', 'batchSize')), ...reading(step) }).toArray(),
  aggregate: (c, step) => c.aggregate(step.pipeline, { ...numbers(pick(step, 'batchSize')), ...reading(step) }).toArray(),
  count: async (c, step) => plain(await c.countDocuments(step.filter ?? {}, reading(step))),
  distinct: (c, step) => c.distinct(step.field, step.filter ?? {}, reading(step)),
  updateOne: async (c, step) => updated(await c.updateOne(step.filter, step.update, extras(step))),
  updateMany: async (c, step) => updated(await c.updateMany(step.filter, step.update, extras(step))),
  replaceOne: async (c, step) => updated(await c.replaceOne(step.filter, step.replacement, extras(step))),
  deleteOne: async (c, step) => plain((await c.deleteOne(step.filter)).deletedCount),
  deleteMany: async (c, step) => plain((await c.deleteMany(step.filter)).deletedCount),
  findOneAndUpdate: (c, step) => c.findOneAndUpdate(step.filter, step.update, { ...extras(step), returnDocument: 'after' }),
  createIndex: (c, step) => c.createIndex(step.keys, step.options ?? {}),
  listIndexes: async (c) => (await c.listIndexes().toArray()).map((i) => i.name).sort(),
  dropIndex: async (c, step) => { await c.dropIndex(step.name); return null; },
  drop: async (c) => { await c.drop(); return null; },
  async bulk(c, step) {
    const r = await c.bulkWrite(step.models, pick(step, 'ordered'));
    return {
      inserted: plain(r.insertedCount), matched: plain(r.matchedCount), modified: plain(r.modifiedCount),
      deleted: plain(r.deletedCount), upserted: plain(r.upsertedCount),
    };
  },
};

function failure(e) {
  const told = { code: typeof e.code === 'number' ? e.code : null, message: `${e.name}: ${e.message}` };
  if (e instanceof MongoBulkWriteError) {
    const errors = [].concat(e.writeErrors);
    told.code = errors[0]?.code ?? e.code;
    told.failed = errors.map((w) => plain(w.index));
    told.inserted = plain(e.insertedCount);
  }
  return told;
}

async function main() {
  console.log(JSON.stringify({ ready: `mongodb (npm) ${version}` }));
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      const step = BSON.EJSON.parse(line, { relaxed: false });
      answer = { ok: (await ops[step.op](step.collection && db.collection(step.collection), step)) ?? null };
    } catch (e) {
      answer = { error: failure(e) };
    }
    console.log(BSON.EJSON.stringify(answer, { relaxed: false }));
  }
  await client.close();
}

await main();

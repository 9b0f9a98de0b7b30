// mongosh as a puppet: carries out the steps that it reads, a line of Extended JSON each, and answers with a line each.
// The steps are told in ../scenario_test.go, the same to every client. Started as: mongosh --quiet URI --file puppet.js
const fs = require('fs');

const sibling = db.getSiblingDB('interop');
const pick = (step, ...names) => Object.fromEntries(names.filter((n) => n in step).map((n) => [n, step[n]]));
const extras = (step) => pick(step, 'upsert', 'arrayFilters');
const plain = (n) => Number(n);
const updated = (r) => ({ matched: plain(r.matchedCount), modified: plain(r.modifiedCount), upserted: r.insertedId ?? null });

// prefer gives a cursor the read preference of a step, and all else that a cursor is told.
function prefer(cursor, step) {
  const told = step.readPreference;
  if (told) cursor = told.tags ? cursor.readPref(told.mode, told.tags) : cursor.readPref(told.mode);
  return cursor;
}

function command(step) {
  const target = db.getSiblingDB(step.db);
  const told = step.readPreference;
  if (!told) return target.runCommand(step.command);
  return target.runCommand({ ...step.command, $readPreference: { mode: told.mode, ...(told.tags && { tags: told.tags }) } });
}

function find(c, step) {
  let found = c.find(step.filter ?? {}, step.projection ?? {});
  if (step.sort) found = found.sort(step.sort);
  for (const name of ['skip', 'limit', 'batchSize']) if (name in step) found = found[name](plain(step[name]));
  return prefer(found, step).toArray();
}

function aggregate(c, step) {
  const batch = 'batchSize' in step ? { batchSize: plain(step.batchSize) } : {};
  return prefer(c.aggregate(step.pipeline, batch), step).toArray();
}

function members() {
  const told = db.hello();
  return { primary: told.primary ?? null, secondaries: told.hosts.filter((h) => h !== told.primary).sort() };
}

const ops = {
  members,
  command: (c, step) => command(step),
  insertOne: (c, step) => c.insertOne(step.document).insertedId,
  insertMany: (c, step) => Object.keys(c.insertMany(step.documents, pick(step, 'ordered')).insertedIds).length,
  find,
  aggregate,
  count: (c, step) => plain(c.countDocuments(step.filter ?? {})),
  distinct: (c, step) => c.distinct(step.field, step.filter ?? {}),
  updateOne: (c, step) => updated(c.updateOne(step.filter, step.update, extras(step))),
  updateMany: (c, step) => updated(c.updateMany(step.filter, step.update, extras(step))),
  replaceOne: (c, step) => updated(c.replaceOne(step.filter, step.replacement, extras(step))),
  deleteOne: (c, step) => plain(c.deleteOne(step.filter).deletedCount),
  deleteMany: (c, step) => plain(c.deleteMany(step.filter).deletedCount),
  findOneAndUpdate: (c, step) => c.findOneAndUpdate(step.filter, step.update, { ...extras(step), returnDocument: 'after' }),
  createIndex: (c, step) => c.createIndex(step.keys, step.options ?? {}),
  listIndexes: (c) => c.getIndexes().map((i) => i.name).sort(),
  dropIndex: (c, step) => { c.dropIndex(step.name); },
  drop: (c) => { c.drop(); },
  bulk: (c, step) => {
    const r = c.bulkWrite(step.models, pick(step, 'ordered'));
    return {
      inserted: plain(r.insertedCount), matched: plain(r.matchedCount), modified: plain(r.modifiedCount),
      deleted: plain(r.deletedCount), upserted: plain(r.upsertedCount),
    };
  },
};

function failure(e) {
  const told = { code: typeof e.code === 'number' ? e.code : null, message: `${e.name}: ${e.message}` };
  if (e.writeErrors) {
    const errors = [].concat(e.writeErrors);
    told.code = errors[0]?.code ?? e.code;
    told.failed = errors.map((w) => plain(w.index));
    told.inserted = plain(e.result?.insertedCount ?? e.insertedCount ?? 0);
  }
  return told;
}

// line reads from standard input up to the next line's end; null is the end of all.
let rest = '';
function line() {
  const buffer = Buffer.alloc(65536);
  while (!rest.includes('\n')) {
    let n;
    try {
      n = fs.readSync(0, buffer);
    } catch (e) {
      if (e.code === 'EAGAIN') { sleep(1); continue; }
      throw e;
    }
    if (n === 0) return null;
    rest += buffer.toString('utf8', 0, n);
  }
  const end = rest.indexOf('\n');
  const out = rest.slice(0, end);
  rest = rest.slice(end + 1);
  return out;
}

function say(told) { fs.writeSync(1, EJSON.stringify(told, { relaxed: false }) + '\n'); }

say({ ready: `mongosh ${version()}` });
for (let told = line(); told !== null; told = line()) {
  let answer;
  try {
    const step = EJSON.parse(told, { relaxed: false });
    answer = { ok: ops[step.op](step.collection && sibling.getCollection(step.collection), step) ?? null };
  } catch (e) {
    answer = { error: failure(e) };
  }
  say(answer);
}

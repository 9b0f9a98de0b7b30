<?php
// The PHP driver's extension as a puppet: carries out the steps that it reads, a line of Extended JSON each, and answers
// with a line each. The steps are told in ../scenario_test.go, the same to every client.
// The extension has queries, bulk writes and commands, and no collections: those would come with a library over it.

use MongoDB\BSON;
use MongoDB\Driver\BulkWrite;
use MongoDB\Driver\Command;
use MongoDB\Driver\Exception;
use MongoDB\Driver\Manager;
use MongoDB\Driver\Query;
use MongoDB\Driver\ReadPreference;

const DATABASE = 'interop';
const TYPES = ['root' => 'object', 'document' => 'object', 'array' => 'array'];

final class Puppet
{
    private Manager $manager;

    public function __construct(string $uri)
    {
        $this->manager = new Manager($uri);
    }

    public function do(object $step): mixed
    {
        return $this->{$step->op}($step);
    }

    private function options(object $step): array
    {
        if (!isset($step->readPreference)) {
            return [];
        }
        $told = $step->readPreference;
        return ['readPreference' => new ReadPreference($told->mode, $told->tags ?? null)];
    }

    /** Every document of a cursor. */
    private function all(iterable $cursor): array
    {
        $cursor->setTypeMap(TYPES);
        return iterator_to_array($cursor, false);
    }

    private function read(object $step, array $command, string $db = DATABASE): array
    {
        return $this->all($this->manager->executeReadCommand($db, new Command($command), $this->options($step)));
    }

    private function change(object $step, array $command): object
    {
        return $this->all($this->manager->executeReadWriteCommand(DATABASE, new Command($command)))[0];
    }

    private function members(object $step): array
    {
        $this->manager->executeReadCommand('admin', new Command(['ping' => 1]));
        $primary = null;
        $secondaries = [];
        foreach ($this->manager->getServers() as $server) {
            $address = $server->getHost() . ':' . $server->getPort();
            if ($server->isPrimary()) {
                $primary = $address;
            } elseif ($server->isSecondary()) {
                $secondaries[] = $address;
            }
        }
        sort($secondaries);
        return ['primary' => $primary, 'secondaries' => $secondaries];
    }

    private function command(object $step): object
    {
        return $this->read($step, (array) $step->command, $step->db)[0];
    }

    private function write(object $step, BulkWrite $bulk): MongoDB\Driver\WriteResult
    {
        return $this->manager->executeBulkWrite(DATABASE . '.' . $step->collection, $bulk);
    }

    private function insertOne(object $step): mixed
    {
        $bulk = new BulkWrite();
        $id = $bulk->insert($step->document);
        $this->write($step, $bulk);
        return $id;
    }

    private function insertMany(object $step): int
    {
        $bulk = new BulkWrite(['ordered' => $step->ordered ?? true]);
        foreach ($step->documents as $document) {
            $bulk->insert($document);
        }
        return $this->write($step, $bulk)->getInsertedCount();
    }

    private function find(object $step): array
    {
        $options = array_intersect_key((array) $step, array_flip(['sort', 'projection', 'skip', 'limit', 'batchSize']));
        $query = new Query($step->filter ?? new stdClass(), $options);
        return $this->all($this->manager->executeQuery(DATABASE . '.' . $step->collection, $query, $this->options($step)));
    }

    private function aggregate(object $step): array
    {
        $cursor = new stdClass();
        if (isset($step->batchSize)) {
            $cursor->batchSize = $step->batchSize;
        }
        return $this->read($step, ['aggregate' => $step->collection, 'pipeline' => $step->pipeline, 'cursor' => $cursor]);
    }

    private function count(object $step): int
    {
        $count = [['$match' => $step->filter ?? new stdClass()], ['$group' => ['_id' => 1, 'n' => ['$sum' => 1]]]];
        $told = $this->read($step, ['aggregate' => $step->collection, 'pipeline' => $count, 'cursor' => new stdClass()]);
        return $told[0]->n ?? 0;
    }

    private function distinct(object $step): array
    {
        $command = ['distinct' => $step->collection, 'key' => $step->field, 'query' => $step->filter ?? new stdClass()];
        return $this->read($step, $command)[0]->values;
    }

    private static function extras(object $step): array
    {
        return array_intersect_key((array) $step, array_flip(['upsert', 'arrayFilters']));
    }

    private function update(object $step, object $update, bool $multi): array
    {
        $bulk = new BulkWrite();
        $bulk->update($step->filter, $update, ['multi' => $multi] + self::extras($step));
        $done = $this->write($step, $bulk);
        return [
            'matched' => $done->getMatchedCount(),
            'modified' => $done->getModifiedCount(),
            'upserted' => $done->getUpsertedIds()[0] ?? null,
        ];
    }

    private function updateOne(object $step): array
    {
        return $this->update($step, $step->update, false);
    }

    private function updateMany(object $step): array
    {
        return $this->update($step, $step->update, true);
    }

    private function replaceOne(object $step): array
    {
        return $this->update($step, $step->replacement, false);
    }

    private function delete(object $step, int $limit): int
    {
        $bulk = new BulkWrite();
        $bulk->delete($step->filter, ['limit' => $limit]);
        return $this->write($step, $bulk)->getDeletedCount();
    }

    private function deleteOne(object $step): int
    {
        return $this->delete($step, 1);
    }

    private function deleteMany(object $step): int
    {
        return $this->delete($step, 0);
    }

    private function findOneAndUpdate(object $step): mixed
    {
        $command = ['findAndModify' => $step->collection, 'query' => $step->filter, 'update' => $step->update, 'new' => true];
        return $this->change($step, $command + self::extras($step))->value;
    }

    private function createIndex(object $step): string
    {
        $options = (array) ($step->options ?? []);
        $parts = [];
        foreach ($step->keys as $field => $direction) {
            $parts[] = $field . '_' . $direction;
        }
        $index = ['key' => $step->keys, 'name' => implode('_', $parts)];
        $index = $options + $index;
        $this->change($step, ['createIndexes' => $step->collection, 'indexes' => [$index]]);
        return $index['name'];
    }

    private function listIndexes(object $step): array
    {
        $names = array_map(fn ($index) => $index->name, $this->read($step, ['listIndexes' => $step->collection]));
        sort($names);
        return $names;
    }

    private function dropIndex(object $step): mixed
    {
        $this->change($step, ['dropIndexes' => $step->collection, 'index' => $step->name]);
        return null;
    }

    private function drop(object $step): mixed
    {
        $this->change($step, ['drop' => $step->collection]);
        return null;
    }

    private function bulk(object $step): array
    {
        $bulk = new BulkWrite(['ordered' => $step->ordered ?? true]);
        foreach ($step->models as $told) {
            $kind = array_key_first((array) $told);
            $m = $told->$kind;
            match ($kind) {
                'insertOne' => $bulk->insert($m->document),
                'updateOne' => $bulk->update($m->filter, $m->update, ['multi' => false] + self::extras($m)),
                'updateMany' => $bulk->update($m->filter, $m->update, ['multi' => true] + self::extras($m)),
                'replaceOne' => $bulk->update($m->filter, $m->replacement, ['multi' => false] + self::extras($m)),
                'deleteOne' => $bulk->delete($m->filter, ['limit' => 1]),
                'deleteMany' => $bulk->delete($m->filter, ['limit' => 0]),
            };
        }
        $done = $this->write($step, $bulk);
        return [
            'inserted' => $done->getInsertedCount(),
            'matched' => $done->getMatchedCount(),
            'modified' => $done->getModifiedCount(),
            'deleted' => $done->getDeletedCount(),
            'upserted' => $done->getUpsertedCount(),
        ];
    }
}

function failure(Exception\Exception $e): array
{
    $told = ['code' => $e->getCode(), 'message' => get_class($e) . ': ' . $e->getMessage()];
    if ($e instanceof Exception\WriteException) {
        $errors = $e->getWriteResult()->getWriteErrors();
        if ($errors) {
            $told['code'] = $errors[0]->getCode();
        }
        $told['failed'] = array_map(fn ($w) => $w->getIndex(), $errors);
        $told['inserted'] = $e->getWriteResult()->getInsertedCount();
    }
    return $told;
}

function say(array $line): void
{
    fwrite(STDOUT, BSON\toCanonicalExtendedJSON(BSON\fromPHP($line)) . "\n");
}

$puppet = new Puppet($argv[1]);
say(['ready' => 'php-mongodb ' . phpversion('mongodb')]);
while (($line = fgets(STDIN)) !== false) {
    try {
        say(['ok' => $puppet->do(BSON\toPHP(BSON\fromJSON($line), TYPES))]);
    } catch (Exception\Exception $e) {
        say(['error' => failure($e)]);
    }
}

"""PyMongo as a puppet: carries out the steps that it reads, a line of Extended JSON each, and answers with a line each.

The steps are told in ../scenario_test.go, the same to every client.
"""

import sys
from collections import OrderedDict

import pymongo
from bson import json_util
from bson.binary import UuidRepresentation
from pymongo import errors, read_preferences

READ = json_util.JSONOptions(document_class=OrderedDict, tz_aware=True, uuid_representation=UuidRepresentation.STANDARD)
WRITE = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, uuid_representation=UuidRepresentation.STANDARD)
MODES = {
    "primary": read_preferences.Primary,
    "primaryPreferred": read_preferences.PrimaryPreferred,
    "secondary": read_preferences.Secondary,
    "secondaryPreferred": read_preferences.SecondaryPreferred,
    "nearest": read_preferences.Nearest,
}


class Puppet:
    def __init__(self, uri):
        self.client = pymongo.MongoClient(uri, document_class=OrderedDict, tz_aware=True, uuidRepresentation="standard")

    def do(self, step):
        return getattr(self, step["op"])(step)

    def preference(self, step):
        told = step.get("readPreference")
        if told is None:
            return None
        mode = MODES[told["mode"]]
        return mode(tag_sets=told["tags"]) if "tags" in told else mode()

    def collection(self, step):
        db = self.client.get_database("interop")
        return db.get_collection(step["collection"], read_preference=self.preference(step))

    def members(self, step):
        self.client.admin.command("ping")
        host = "{0[0]}:{0[1]}".format
        return {
            "primary": host(self.client.primary) if self.client.primary else None,
            "secondaries": sorted(host(a) for a in self.client.secondaries),
        }

    def command(self, step):
        db = self.client.get_database(step["db"])
        return db.command(step["command"], read_preference=self.preference(step), codec_options=self.client.codec_options)

    def insertOne(self, step):
        return self.collection(step).insert_one(step["document"]).inserted_id

    def insertMany(self, step):
        many = self.collection(step).insert_many(step["documents"], ordered=step.get("ordered", True))
        return len(many.inserted_ids)

    def find(self, step):
        found = self.collection(step).find(step.get("filter", {}), step.get("projection"))
        if "sort" in step:
            found = found.sort(list(step["sort"].items()))
        for name, set_it in (("skip", found.skip), ("limit", found.limit), ("batchSize", found.batch_size)):
            if name in step:
                set_it(step[name])
        return list(found)

    def aggregate(self, step):
        options = {"batchSize": step["batchSize"]} if "batchSize" in step else {}
        return list(self.collection(step).aggregate(step["pipeline"], **options))

    def count(self, step):
        return self.collection(step).count_documents(step.get("filter", {}))

    def distinct(self, step):
        return self.collection(step).distinct(step["field"], step.get("filter", {}))

    def updateOne(self, step):
        return updated(self.collection(step).update_one(step["filter"], step["update"], **extras(step)))

    def updateMany(self, step):
        return updated(self.collection(step).update_many(step["filter"], step["update"], **extras(step)))

    def replaceOne(self, step):
        return updated(self.collection(step).replace_one(step["filter"], step["replacement"], **extras(step)))

    def deleteOne(self, step):
        return self.collection(step).delete_one(step["filter"]).deleted_count

    def deleteMany(self, step):
        return self.collection(step).delete_many(step["filter"]).deleted_count

    def findOneAndUpdate(self, step):
        return self.collection(step).find_one_and_update(
            step["filter"], step["update"], return_document=pymongo.ReturnDocument.AFTER, **extras(step)
        )

    def createIndex(self, step):
        return self.collection(step).create_index(list(step["keys"].items()), **step.get("options", {}))

    def listIndexes(self, step):
        return sorted(index["name"] for index in self.collection(step).list_indexes())

    def dropIndex(self, step):
        self.collection(step).drop_index(step["name"])

    def drop(self, step):
        self.collection(step).drop()

    def bulk(self, step):
        models = []
        for told in step["models"]:
            kind, m = next(iter(told.items()))
            if kind == "insertOne":
                models.append(pymongo.InsertOne(m["document"]))
            elif kind == "updateOne":
                models.append(pymongo.UpdateOne(m["filter"], m["update"], **extras(m)))
            elif kind == "updateMany":
                models.append(pymongo.UpdateMany(m["filter"], m["update"], **extras(m)))
            elif kind == "replaceOne":
                models.append(pymongo.ReplaceOne(m["filter"], m["replacement"], **extras(m)))
            elif kind == "deleteOne":
                models.append(pymongo.DeleteOne(m["filter"]))
            elif kind == "deleteMany":
                models.append(pymongo.DeleteMany(m["filter"]))
            else:
                raise ValueError("no model " + kind)
        done = self.collection(step).bulk_write(models, ordered=step.get("ordered", True))
        return {
            "inserted": done.inserted_count,
            "matched": done.matched_count,
            "modified": done.modified_count,
            "deleted": done.deleted_count,
            "upserted": done.upserted_count,
        }


def extras(step):
    names = {"upsert": "upsert", "arrayFilters": "array_filters"}
    return {names[k]: v for k, v in step.items() if k in names}


def updated(result):
    return {"matched": result.matched_count, "modified": result.modified_count, "upserted": result.upserted_id}


def failure(e):
    details = getattr(e, "details", None) or {}
    told = {"code": getattr(e, "code", None), "message": type(e).__name__ + ": " + str(e)}
    if isinstance(e, errors.BulkWriteError):
        told["code"] = details["writeErrors"][0]["code"]
        told["failed"] = [w["index"] for w in details["writeErrors"]]
        told["inserted"] = details["nInserted"]
    return told


def main():
    puppet = Puppet(sys.argv[1])
    print(json_util.dumps({"ready": "pymongo " + pymongo.version}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"ok": puppet.do(json_util.loads(line, json_options=READ))}
        except errors.PyMongoError as e:
            answer = {"error": failure(e)}
        print(json_util.dumps(answer, json_options=WRITE), flush=True)
    puppet.client.close()


main()

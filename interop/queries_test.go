package interop

// A question is asked of every client about the real input, and all must get the same answer.
type question struct {
	name   string
	ask    string          // a step
	want   func(world) any // the answer worked out from the input, without any database; nil: the clients agree, that is all
	ferret bool            // FerretDB answers it too, and alike
}

var questions = []question{
	{name: "every country, whole", ferret: true, ask: `{"op":"find","collection":"countries","sort":{"cca3":1},"projection":{"_id":0},"batchSize":40}`, want: world.wholeCountries},
	{name: "neighbours of two, in an array", ferret: true, want: world.betweenGermanyAndFrance,
		ask: `{"op":"find","collection":"countries","filter":{"borders":{"$all":["DEU","FRA"]}},"sort":{"cca3":1},"projection":{"_id":0,"name.common":1,"borders":1}}`},
	{name: "an array within documents by place", ferret: true, ask: `{"op":"find","collection":"countries","filter":{"latlng.0":{"$lt":-40}},"sort":{"latlng.1":-1},"projection":{"_id":0,"cca3":1,"latlng":1}}`},
	{name: "Cyrillic by regular expression", ferret: true,
		ask: `{"op":"find","collection":"countries","filter":{"translations.rus.common":{"$regularExpression":{"pattern":"^Ав|рия$","options":""}}},"sort":{"cca3":1},"projection":{"_id":0,"translations.rus":1,"flag":1}}`},
	{name: "letters of either case", ferret: true, want: world.united,
		ask: `{"op":"find","collection":"countries","filter":{"name.common":{"$regularExpression":{"pattern":"^(the|united)\\b","options":"i"}}},"sort":{"name.common":1},"projection":{"_id":0,"name.common":1}}`},
	{name: "sort, skip and limit", ferret: true, want: world.largest,
		ask: `{"op":"find","collection":"countries","sort":{"area":-1,"cca3":1},"skip":20,"limit":10,"projection":{"_id":0,"cca3":1,"area":1}}`},
	{name: "fields that are not there", ferret: true, want: world.euro, ask: `{"op":"count","collection":"countries","filter":{"currencies.EUR":{"$exists":true}}}`},
	{name: "null and empty", ferret: true, want: world.islandsOrUnclear,
		ask: `{"op":"count","collection":"countries","filter":{"$or":[{"borders":{"$size":0}},{"independent":null}]}}`},
	{name: "distinct elements", ferret: true, want: world.suffixes, ask: `{"op":"distinct","collection":"countries","field":"idd.suffixes","filter":{"region":"Europe"}}`},
	{name: "distinct names in Arabic", ferret: true, ask: `{"op":"distinct","collection":"countries","field":"translations.ara.common"}`},
	{name: "most neighbours", want: world.mostNeighbours, ask: `{"op":"aggregate","collection":"countries","pipeline":[
		{"$unwind":"$borders"},{"$group":{"_id":"$borders","n":{"$sum":1}}},{"$sort":{"n":-1,"_id":1}},{"$limit":12}]}`},
	{name: "regions", want: world.regions, ask: `{"op":"aggregate","collection":"countries","pipeline":[
		{"$group":{"_id":"$region","countries":{"$sum":1},"largest":{"$max":"$area"},"south":{"$min":{"$arrayElemAt":["$latlng",0]}},"subregions":{"$addToSet":"$subregion"}}},
		{"$set":{"subregions":{"$size":"$subregions"}}},{"$sort":{"_id":1}}]}`},
	{name: "languages, by the names of fields", want: world.languages, ask: `{"op":"aggregate","collection":"countries","pipeline":[
		{"$project":{"l":{"$objectToArray":"$languages"}}},{"$unwind":"$l"},{"$group":{"_id":"$l.k","n":{"$sum":1},"name":{"$first":"$l.v"}}},
		{"$match":{"n":{"$gte":4}}},{"$sort":{"n":-1,"_id":1}}]}`},
	{name: "neighbours of landlocked countries, joined", ask: `{"op":"aggregate","collection":"countries","pipeline":[
		{"$match":{"landlocked":true}},{"$sort":{"cca3":1}},{"$lookup":{"from":"countries","localField":"borders","foreignField":"cca3","as":"near"}},
		{"$unwind":"$near"},{"$sort":{"cca3":1,"near.cca3":1}},{"$group":{"_id":"$cca3","near":{"$push":{"$concat":["$near.flag"," ","$near.name.common"]}}}},{"$sort":{"_id":1}}]}`},
	{name: "elements that match twice", want: world.bulky,
		ask: `{"op":"count","collection":"orders","filter":{"status":{"$in":["open","sent"]},"lines":{"$elemMatch":{"quantity":{"$gte":8},"cents":{"$lt":500}}}}}`},
	{name: "deep in a sorted collection", want: world.deep,
		ask: `{"op":"find","collection":"orders","sort":{"customer.country":1,"_id":-1},"skip":50000,"limit":5,"projection":{"customer.country":1,"lines.sku":1}}`},
	{name: "days of a leap year", want: world.leapDay, ask: `{"op":"find","collection":"orders","filter":{"at":{"$gte":{"$date":"2024-02-29T00:00:00Z"},"$lt":{"$date":"2024-03-01T00:00:00Z"}},
		"note":{"$exists":true}},"sort":{"_id":1},"projection":{"note":1,"at":1}}`},
	{name: "every order, in batches", want: world.everyOrder, ask: `{"op":"find","collection":"orders","sort":{"_id":1},"projection":{"customer.name":1},"batchSize":7000}`},
	{name: "months", want: world.months, ask: `{"op":"aggregate","collection":"orders","pipeline":[{"$unwind":"$lines"},
		{"$group":{"_id":{"$dateToString":{"date":"$at","format":"%Y-%m"}},"cents":{"$sum":{"$multiply":["$lines.cents","$lines.quantity"]}},"lines":{"$sum":1}}},{"$sort":{"_id":1}}]}`},
	{name: "best sold, in decimals", want: world.bestSold, ask: `{"op":"aggregate","collection":"orders","pipeline":[{"$match":{"status":{"$ne":"returned"}}},{"$unwind":"$lines"},
		{"$group":{"_id":"$lines.sku","sold":{"$sum":"$lines.quantity"},"for":{"$sum":{"$multiply":["$lines.price","$lines.quantity"]}}}},{"$sort":{"sold":-1,"_id":1}},{"$limit":10}]}`},
	{name: "countries of customers, joined", want: world.buyers, ask: `{"op":"aggregate","collection":"orders","pipeline":[{"$group":{"_id":"$customer.country","n":{"$sum":1}}},{"$sort":{"n":-1,"_id":1}},{"$limit":7},
		{"$lookup":{"from":"countries","localField":"_id","foreignField":"cca3","as":"c"}},{"$unwind":"$c"},{"$project":{"n":1,"name":"$c.translations.jpn.common","flag":"$c.flag"}}]}`},
	{name: "rebates of mixed types", want: world.rebates, ask: `{"op":"aggregate","collection":"orders","pipeline":[{"$group":{"_id":{"$type":"$rebate"},"sum":{"$sum":"$rebate"},"most":{"$max":"$rebate"},"n":{"$sum":1}}},{"$sort":{"_id":1}}]}`},
	{name: "distinct customers", want: world.smiths, ask: `{"op":"distinct","collection":"orders","field":"customer.number","filter":{"customer.name":{"$regularExpression":{"pattern":" smith$","options":"i"}},"tags":"vip"}}`},
	{name: "distinct tags", want: world.tags, ask: `{"op":"distinct","collection":"orders","field":"tags"}`},
}

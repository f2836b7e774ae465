// Reads the text and its limits.
#include "bench/plan/quality_text.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/plan/prompts.h"

namespace decodelab {
namespace {

constexpr std::int64_t kRandomIds = 2112;
/// One row's context and what it predicts.
constexpr std::size_t kFewestTokens = 128;

constexpr std::string_view kText =
    R"text(The harbour office at Lindesund opens at six, an hour before the first ferry, and closes when the last boat has been
entered in the book. In the forty years that Marit Solberg worked there, she entered one hundred and twelve thousand
boats. She knew this because the books were numbered, each page had thirty lines, and she had never left a line empty.

When the office bought its first computer, she was asked whether she would like to stop writing. She thought about it
over a weekend. On Monday she said that she would write in the book first and type afterwards, so that one of the two
would still be right if the other was wrong. Nobody argued. Three winters later a storm cut the power for two days,
and the only list of the boats that were out at sea was the one in her handwriting.

"Which boats are missing?" the coast guard asked over the radio.

"None are missing," she said. "Two are late. The Havbris has a new engine and her skipper is careful with it. The other
one is my cousin, who is always late."

Both came in before midnight.

How tides are predicted

A tide is the sum of many slow waves, each with a period of its own. The largest in most places is caused by the moon
and returns every twelve hours and twenty-five minutes. The second is caused by the sun and returns every twelve hours.
When the two agree, at new moon and at full moon, high water is higher and low water is lower than usual; these are
called spring tides, although they have nothing to do with the season. When the two work against each other, about a
week later, the range is small, and sailors speak of a neap tide.

To predict the tide of a harbour, one measures the height of the water every hour for at least a month, and better for
a year. From these numbers the size and the delay of each wave are computed. The sum of the waves can then be carried
forward for as long as the harbour keeps its shape. A dredged channel, a new pier or a shifted sandbank changes the
delays, and the old tables become wrong by a few minutes and a few centimetres. The weather adds what no table knows:
a strong wind towards the land can raise the water by a metre, and a change of air pressure of one hectopascal moves it
by about one centimetre.

Before there were computers, the sum was made by machines of brass. Each wave had a wheel of the right size, turned by a
gear of the right ratio, and a wire ran over all the wheels to a pen. One turn of the crank was a day. In an afternoon,
two people could draw the tides of a harbour for a whole year. During the war such a machine was used to find the days on
which the water at certain beaches would be low shortly after dawn, with a late moon the night before. There were only
three such days in the month, and the fifth, the sixth and the seventh of June were among them.

A recipe for fish soup (four people)

- 600 g of firm white fish, without bones
- 200 g of mussels, cleaned
- 2 carrots, 1 leek, 1 small celery root
- 1 litre of fish stock
- 2 dl of cream
- 30 g of butter, salt, white pepper, a little vinegar, chives

Cut the vegetables into thin strips. Melt the butter in a wide pot, add the vegetables, and let them soften for five
minutes without taking colour. Pour in the stock and bring it to the boil. Add the cream and simmer for ten minutes more.
Cut the fish into pieces of about three centimetres and lower them into the soup together with the mussels. Take the pot
off the heat, put the lid on, and wait for six minutes: the fish is done when it falls apart under a fork. Season with
salt, pepper and a few drops of vinegar. Throw away any mussel that has not opened. Serve with chives and dark bread.

What the old clock taught us

The clock in the tower ran four minutes fast, and everyone in town knew it. Shops opened by it, the school bell rang by
it, and the ferry left by it. Strangers missed nothing, because the clock was always ahead and never behind. When the
council had it repaired at last, the complaints began on the same day. The baker had no bread at seven, because his
first customers had always come at what they called seven and he called four minutes to. The children were early, stood
in the yard in the cold, and were told that they were on time. For two weeks the town was cross with the truth.

There is a lesson here about every instrument that is used for a long time. People do not read an instrument; they read
it together with what they know about it. If the error is constant, it is soon part of the reading. Whoever removes the
error must tell all who had learned to live with it, or the correction does more harm than the error ever did. An
honest repair therefore has two parts: the work on the instrument, and the letter to those who use it.

The same is true of measurements in general. A scale that shows two grams too much is useful as long as it always shows
two grams too much. A scale that is right on average, but wrong by ten grams in either direction from one hour to the
next, is of little use for baking, however carefully its mean was set. To know which of the two one has, a single
measurement is not enough, and neither are a hundred measurements of the same loaf in the same minute. One must come back
on another day, with the oven cold, and weigh again.

A short conversation about maps

Teacher: What is missing from this map?
Pupil: The names of the streets.
Teacher: What else?
Pupil: The people.
Teacher: Should a map have people on it?
Pupil: No. They would have moved before it was printed.
Teacher: Then what belongs on a map?
Pupil: What will still be there when someone looks.
Teacher: And if a bridge is torn down?
Pupil: Then the map was right when it was made, and someone has to write the year on it.

Numbers from the harbour book

In 1987 the office counted 2,914 arrivals: 1,102 fishing boats, 861 ferries, 640 pleasure boats, 248 cargo ships and 63
others. Ten years later there were 3,377 arrivals, of which 702 were fishing boats, 893 ferries, 1,511 pleasure boats,
201 cargo ships and 70 others. The number of fishing boats had fallen by more than a third, while pleasure boats had more
than doubled. The busiest day of either year was the second Saturday in July, with 61 and 88 arrivals. On the quietest
day, the first of January, nothing arrived at all, and the page for that day holds one line in blue ink: "Snow. No
boats. Coffee with the pilot."

Why ropes have strands

A rope of one thick fibre would be stiff, and it would break without a warning. A rope of many thin fibres that lie side
by side would be soft, but each fibre would carry only what it happened to carry, and the shortest would tear first. So
fibres are twisted into yarns, yarns are twisted into strands the other way round, and three or four strands are laid
into a rope, again in the first direction. Each twist tries to open, and each is held closed by the next one. When the
rope is pulled, the strands press against each other, and friction shares the load among fibres that never touch the
end. A damaged fibre hands its load to its neighbours within a few centimetres and takes it back a little further on.
That is why a good rope may have a thousand broken fibres and still hold a ship.

The ropemaker Anders Lie used to say that a rope remembers. A rope that was once bent over a sharp edge will fail at that
place, perhaps years later. He marked such places with red thread and sold the rope cheaply, in two pieces, with the
cut exactly at the mark. "An honest defect," he said, "is one that you can see from the other side of the shop."

Letter to the harbour master

Dear Mr. Aune,

Thank you for your letter of the third of May. You ask whether the lamp on the outer mole could be switched off during
the bright months in order to save electricity. I have looked at the book of the last ten summers. Between the middle of
May and the end of July, the lamp was needed on thirty-one nights, always because of fog, and on nineteen of these nights
at least one boat came in after midnight. It is true that the lamp could be switched on by hand whenever there is fog.
It is also true that fog comes quickly here, and that the person who would have to walk out and switch it on would have
to walk through it.

I would therefore suggest that we keep the lamp and change the bulb. The new ones use a tenth of the current, and they
last for eight years. The difference pays for the bulb in one winter and for the ladder in three.

With kind regards,
Marit Solberg

P.S. The ladder is needed in any case. The old one was borrowed by the pilot in 1994.
)text";

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) {
    throw std::invalid_argument(fmt::format("--quality-text {}: the file cannot be read", path));
  }
  return text;
}

}  // namespace

std::string_view quality_text() { return kText; }

std::vector<std::int64_t> quality_ids(const std::string& file, const ModelText& text, std::int64_t vocabulary_size,
                                      std::uint64_t seed) {
  if (!text.tokenizer) {
    if (!file.empty()) {
      throw std::invalid_argument("--quality-text: the model has no tokenizer, so that it cannot read a text");
    }
    return random_prompts(seed, 1, kRandomIds, vocabulary_size).front();
  }
  std::vector<std::int64_t> ids =
      text.prompt_ids("--quality-text", file.empty() ? std::string(quality_text()) : text_of_file(file));
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(kMostQualityTokens)));
  if (ids.size() < kFewestTokens) {
    throw std::invalid_argument(fmt::format("--quality-text {}: expected a text of at least {} tokens, got {}", file,
                                            kFewestTokens, ids.size()));
  }
  return ids;
}

QualityLimit parse_quality_limit(std::string_view text) {
  QualityLimit limit;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::string_view name = word.substr(0, word.find('='));
    const std::string_view digits = word.substr(std::min(word.size(), name.size() + 1));
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    std::optional<double>* const place = name == "kl"           ? &limit.kl
                                         : name == "perplexity" ? &limit.perplexity
                                         : name == "top-1"      ? &limit.top_1
                                                                : nullptr;
    if (place == nullptr || error != std::errc() || end != digits.data() + digits.size() || !(value > 0)) {
      throw std::invalid_argument(fmt::format(
          "--quality-limit: expected kl=NATS, perplexity=RATIO or top-1=SHARE with a number above 0, or several of "
          "them with commas, got {}",
          in_quotes(word)));
    }
    *place = value;
  }
  return limit;
}

std::string to_string(const QualityLimit& limit) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, *value);
    }
  };
  add("kl", limit.kl);
  add("perplexity", limit.perplexity);
  add("top-1", limit.top_1);
  return text;
}

}  // namespace decodelab

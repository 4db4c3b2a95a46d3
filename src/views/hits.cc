#include "views/hits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "profile/query/hits.h"

namespace flamewire::views {
namespace {

using profile::Store;

constexpr std::size_t max_words = 32;
constexpr std::size_t max_stack = 512;

struct Word {
    std::string name;  // empty: a part of any text
    std::string op;    // "=", "!=", "<", "<=", ">", ">=", "~"
    std::string value;
};

// Splits at spaces outside of quotes, which it removes.
std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    bool quoted = false, open = false;
    for (const char c : text) {
        if (c == ' ' && !quoted) {
            open = false;
            continue;
        }
        if (!open) words.emplace_back();
        open = true;
        if (c == '"')
            quoted = !quoted;
        else
            words.back() += c;
    }
    return words;
}

Result<std::vector<Word>> parse_filter(std::string_view text) {
    std::vector<Word> words;
    for (const std::string& one : split_words(text)) {
        if (words.size() == max_words)
            return fail(ErrorCode::invalid, fmt::format("filter: more than {} words", max_words));
        const std::size_t at = one.find_first_of("=!<>~");
        Word word;
        if (at == std::string::npos || at == 0) {
            word.value = one;
        } else {
            const std::size_t end = at + (one[at] != '~' && one.substr(at + 1).starts_with('=') ? 2 : 1);
            word = {one.substr(0, at), one.substr(at, end - at), one.substr(end)};
            if (word.op == "==") word.op = "=";
            if (word.op == "!")
                return fail(ErrorCode::invalid, fmt::format("filter: '{}' has no comparison; write NAME!=VALUE", one));
        }
        words.push_back(std::move(word));
    }
    return words;
}

std::optional<double> parse_number(std::string_view text) {
    double number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || !std::isfinite(number))
        return std::nullopt;
    return number;
}

template <class T>
bool compare(const T& left, const T& right, std::string_view op) {
    if (op == "=") return left == right;
    if (op == "!=") return left != right;
    if (op == "<") return left < right;
    if (op == "<=") return left <= right;
    if (op == ">") return left > right;
    return left >= right;
}

// Exact, unlike a double.
using Whole = std::variant<std::int64_t, std::uint64_t>;

std::optional<Whole> parse_whole(std::string_view text) {
    const bool negative = text.starts_with('-'), hex = text.starts_with("0x");
    const char* const begin = text.data() + (hex ? 2 : 0);
    const char* const end = text.data() + text.size();
    const auto parse = [&](auto number) -> std::optional<Whole> {
        const auto parsed = std::from_chars(begin, end, number, hex ? 16 : 10);
        if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
        return number;
    };
    return negative ? parse(std::int64_t{}) : parse(std::uint64_t{});
}

bool compare(const Whole& left, const Whole& right, std::string_view op) {
    const auto order = [](auto a, auto b) { return std::cmp_less(a, b) ? -1 : std::cmp_equal(a, b) ? 0 : 1; };
    return compare(std::visit(order, left, right), 0, op);
}

// A value under a name, as a text and, if it is one, as a number.
struct Value {
    std::string text;
    std::optional<Whole> number;
};

class Names {
public:
    Names(const Store& store, const HitValues& values) : store_(store), values_(values) {}

    static bool is_common(std::string_view name) {
        return name == "comm" || name == "pid" || name == "tid" || name == "cpu" || name == "event" ||
               name == "function" || name == "leaf";
    }
    // Nullopt: the event has no such field. A field precedes a common name.
    std::optional<Value> value(const HitRef& ref, std::string_view name) const {
        if (const auto field = values_.field(ref, name)) return Value{values_.text(ref, *field), whole(ref, *field)};
        const profile::Thread& thread = store_.threads()[ref.hit().thread];
        if (name == "comm") return Value{std::string(thread.comm), std::nullopt};
        if (name == "pid") return number(thread.pid);
        if (name == "tid") return number(thread.tid);
        if (name == "cpu") return number(ref.hit().cpu);
        if (name == "event") return Value{store_.events()[ref.chunk->event].name, std::nullopt};
        if (name == "function" || name == "leaf") return Value{innermost(ref), std::nullopt};
        return std::nullopt;
    }
    std::string innermost(const HitRef& ref) const {
        const auto functions = profile::functions_of(store_, ref.hit().stack, 1);
        return functions.empty() ? std::string("[no stack]") : std::string(store_.string(functions.front().name));
    }
    bool matches(const HitRef& ref, const std::vector<Word>& words) const {
        return std::ranges::all_of(words, [&](const Word& word) { return matches(ref, word); });
    }

private:
    std::optional<Whole> whole(const HitRef& ref, std::size_t field) const {
        if (!values_.number(ref, field)) return std::nullopt;
        const std::uint64_t value = ref.chunk->values_of(ref.index)[field];
        if (values_.is_signed(ref, field)) return static_cast<std::int64_t>(value);
        return value;
    }
    static Value number(std::uint64_t value) { return {std::to_string(value), value}; }

    bool matches(const HitRef& ref, const Word& word) const {
        if (word.name.empty()) return mentions(ref, word.value);
        if (word.name == "function" && !values_.field(ref, word.name)) {
            const auto functions = profile::functions_of(store_, ref.hit().stack, max_stack);
            const bool found = std::ranges::any_of(functions, [&](const profile::Function& function) {
                const std::string_view name = store_.string(function.name);
                return word.op == "~" ? name.find(word.value) != std::string_view::npos : name == word.value;
            });
            return word.op == "!=" ? !found : found;
        }
        const auto value = this->value(ref, word.name);
        if (!value) return false;
        if (word.op == "~") return value->text.find(word.value) != std::string::npos;
        if (const auto wanted = parse_whole(word.value); wanted && value->number)
            return compare(*value->number, *wanted, word.op);
        if (const auto wanted = parse_number(word.value); wanted && value->number)
            return compare(std::visit([](auto whole) { return static_cast<double>(whole); }, *value->number), *wanted,
                           word.op);
        return compare(value->text, word.value, word.op);
    }
    bool mentions(const HitRef& ref, std::string_view text) const {
        return store_.threads()[ref.hit().thread].comm.find(text) != std::string_view::npos ||
               values_.line(ref).find(text) != std::string::npos || innermost(ref).find(text) != std::string::npos;
    }

    const Store& store_;
    const HitValues& values_;
};

struct Samples {
    std::uint64_t hits = 0, weight = 0;
    std::vector<double> values;
};

double percentile(std::vector<double>& values, double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : rank - 1);
    std::ranges::nth_element(values, at);
    return *at;
}

HitGroup group_of(const std::string& key, Samples& samples) {
    HitGroup group;
    group.key = key;
    group.hits = samples.hits;
    group.weight = samples.weight;
    if (samples.values.empty()) return group;
    for (const double value : samples.values) group.sum += value;
    const auto [min, max] = std::ranges::minmax(samples.values);
    group.min = min;
    group.max = max;
    group.p50 = percentile(samples.values, 0.5);
    group.p95 = percentile(samples.values, 0.95);
    group.p99 = percentile(samples.values, 0.99);
    return group;
}

// The bucket of a value: 0 and each power of two begin one; negative ones mirror them.
int bucket_of(double value) {
    if (value == 0) return 0;
    const int exponent = std::ilogb(std::abs(value)) + 1'100;  // positive for all numbers
    return value > 0 ? exponent : -exponent;
}

HitBucket bucket(int which, std::uint64_t hits) {
    if (which == 0) return {0, 0, hits};
    const double low = std::ldexp(1.0, std::abs(which) - 1'100), high = std::ldexp(1.0, std::abs(which) - 1'099);
    return which > 0 ? HitBucket{low, high, hits} : HitBucket{-high, -low, hits};
}

std::vector<HitBucket> distribution_of(const std::unordered_map<int, std::uint64_t>& counts) {
    std::vector<HitBucket> buckets;
    buckets.reserve(counts.size());
    for (const auto& [which, hits] : counts) buckets.push_back(bucket(which, hits));
    std::ranges::sort(buckets, {}, &HitBucket::low);
    return buckets;
}

// Whether any traced event has the field.
bool exists(const Store& store, std::string_view name) {
    return std::ranges::any_of(store.events(), [&](const profile::Event& event) {
        return std::ranges::find(event.fields, name, &wire::EventField::name) != event.fields.end();
    });
}

}  // namespace

Result<HitList> list_hits(const Store& store, const HitValues& values, const profile::Filter& filter,
                          const HitListOptions& options) {
    const std::vector<Word> words = TRY(parse_filter(options.filter));
    const Names names(store, values);
    HitList list;
    profile::for_each_hit(store, filter, [&](const profile::HitChunk& chunk, std::size_t index) {
        const HitRef ref{&chunk, index};
        if (options.from && ref.number() < *options.from) return;
        if (names.matches(ref, words)) list.hits.push_back(ref);
    });
    list.matching = list.hits.size();
    const auto earlier = [](const HitRef& a, const HitRef& b) {
        return a.hit().time_ns != b.hit().time_ns ? a.hit().time_ns < b.hit().time_ns : a.number() < b.number();
    };
    std::ranges::sort(list.hits, earlier);
    if (list.hits.size() > options.limit)
        list.hits.erase(list.hits.begin(), list.hits.end() - static_cast<std::ptrdiff_t>(options.limit));
    return list;
}

Result<HitTable> hit_table(const Store& store, const HitValues& values, const profile::Filter& filter,
                           const std::string& hit_filter, const std::string& key, const std::string& value) {
    if (!Names::is_common(key) && !exists(store, key))
        return fail(ErrorCode::invalid, fmt::format("no traced event has a field '{}'", key));
    if (!value.empty() && !exists(store, value))
        return fail(ErrorCode::invalid, fmt::format("no traced event has a field '{}'", value));
    const std::vector<Word> words = TRY(parse_filter(hit_filter));
    const Names names(store, values);
    HitTable table;
    std::unordered_map<std::string, Samples> by_key;
    std::unordered_map<int, std::uint64_t> buckets;
    bool text = false;
    profile::for_each_hit(store, filter, [&](const profile::HitChunk& chunk, std::size_t index) {
        const HitRef ref{&chunk, index};
        if (!names.matches(ref, words)) return;
        const auto name = names.value(ref, key);
        const auto field = value.empty() ? std::nullopt : values.field(ref, value);
        if (!name || (!value.empty() && !field)) {
            ++table.without_key;
            return;
        }
        Samples& samples = by_key[name->text];
        ++samples.hits;
        samples.weight += ref.hit().weight;
        if (!field) return;
        const auto number = values.number(ref, *field);
        text = text || !number;
        samples.values.push_back(number.value_or(0));
        ++buckets[bucket_of(number.value_or(0))];
    });
    if (text) return fail(ErrorCode::invalid, fmt::format("the field '{}' is a text, not a number", value));
    for (auto& [name, samples] : by_key) table.groups.push_back(group_of(name, samples));
    std::ranges::sort(table.groups, [](const HitGroup& a, const HitGroup& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.key < b.key;
    });
    for (std::size_t i = max_hit_groups; i < table.groups.size(); ++i) {
        ++table.other_groups;
        table.other_hits += table.groups[i].hits;
    }
    table.groups.resize(std::min(table.groups.size(), max_hit_groups));
    table.distribution = distribution_of(buckets);
    return table;
}

void write_json(JsonWriter& json, const HitTable& table, bool with_value) {
    json.list("groups", table.groups, [&](const HitGroup& group) {
        json.object();
        json.member("key", group.key);
        json.member("hits", group.hits);
        json.member("weight", group.weight);
        if (with_value) {
            json.member("sum", group.sum);
            json.member("avg", group.average());
            json.member("min", group.min);
            json.member("p50", group.p50);
            json.member("p95", group.p95);
            json.member("p99", group.p99);
            json.member("max", group.max);
        }
        json.end_object();
    });
    json.member("other_groups", table.other_groups);
    json.member("other_hits", table.other_hits);
    json.member("without_key", table.without_key);
    json.list("distribution", table.distribution, [&](const HitBucket& bucket) {
        json.object();
        json.member("low", bucket.low);
        json.member("high", bucket.high);
        json.member("hits", bucket.hits);
        json.end_object();
    });
}

}  // namespace flamewire::views

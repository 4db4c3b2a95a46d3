// A store compared with a model that keeps every sample in a list: random programs, epochs, changing symbols, filters.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "batch_maker.h"
#include "profile/formats/collapsed.h"

namespace flamewire::profile {

namespace {

struct Sample {
    std::uint64_t bucket = 0;
    int event = 0, thread = 0;
    std::vector<int> addresses;  // outermost first
    Weight weight;
};

constexpr int address_count = 40, thread_count = 6, event_count = 2;
constexpr std::uint32_t pid_of(int thread) { return 100 + static_cast<std::uint32_t>(thread) / 3; }
constexpr std::uint32_t tid_of(int thread) { return 500 + static_cast<std::uint32_t>(thread); }

struct Model {
    std::vector<Sample> samples;
    KnownFrames known;

    // Frames of a stack as (name, line), outermost first.
    [[nodiscard]] std::vector<std::pair<std::string, std::uint32_t>> frames(const Sample& sample) const {
        std::vector<std::pair<std::string, std::uint32_t>> list;
        for (const int address : sample.addresses) {
            const auto found = known.find(static_cast<std::uint64_t>(address));
            if (found == known.end()) {
                char text[32];
                std::snprintf(text, sizeof text, "[app+0x%x]", static_cast<unsigned>(address));
                list.emplace_back(text, 0);
                continue;
            }
            for (auto frame = found->second.rbegin(); frame != found->second.rend(); ++frame)
                list.emplace_back((frame->inlined ? "~" : "") + frame->function, frame->line);
        }
        return list;
    }

    template <class Visit>
    void for_each(const Filter& filter, Visit visit) const {
        for (const Sample& sample : samples) {
            const std::uint64_t time = sample.bucket * 10'000'000;
            if (time < filter.start_ns || time >= filter.end_ns) continue;
            if (filter.event && static_cast<EventId>(sample.event) + 1 != *filter.event) continue;
            const auto wants = [](const std::vector<std::uint32_t>& list, std::uint32_t id) {
                return list.empty() || std::ranges::count(list, id) != 0;
            };
            if (wants(filter.pids, pid_of(sample.thread)) && wants(filter.tids, tid_of(sample.thread))) visit(sample);
        }
    }
};

using Path = std::vector<std::string>;

std::map<Path, std::pair<Weight, Weight>> tree_of_model(const Model& model, const Filter& filter) {
    std::map<Path, std::pair<Weight, Weight>> tree;
    tree[{}];
    model.for_each(filter, [&](const Sample& sample) {
        Path path;
        tree[path].second += sample.weight;
        for (const auto& [name, line] : model.frames(sample)) {
            path.push_back(name);
            tree[path].second += sample.weight;
        }
        tree[path].first += sample.weight;
    });
    return tree;
}

std::map<Path, std::pair<Weight, Weight>> tree_of_store(const Store& store, const CallTree& tree) {
    std::map<Path, std::pair<Weight, Weight>> out;
    std::vector<Path> paths(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        const CallTree::Node& node = tree.nodes[i];
        if (i > 0) {
            REQUIRE(node.parent < i);
            paths[i] = paths[node.parent];
            const Function& function = tree.functions[node.function];
            paths[i].push_back((function.kind == FrameKind::inlined ? "~" : "") +
                               std::string(store.string(function.name)));
        }
        CHECK(out.try_emplace(paths[i], node.self, node.total).second);
    }
    return out;
}

void check_functions(const Store& store, const Model& model, const Filter& filter) {
    std::map<std::string, std::pair<Weight, Weight>> expected;
    model.for_each(filter, [&](const Sample& sample) {
        std::set<std::string> seen;
        std::string leaf;
        for (auto [name, line] : model.frames(sample)) {
            if (name[0] == '~') name.erase(0, 1);
            seen.insert(name);
            leaf = name;
        }
        for (const std::string& name : seen) expected[name].second += sample.weight;
        expected[leaf].first += sample.weight;
    });
    std::map<std::string, std::pair<Weight, Weight>> actual;
    for (const FunctionRow& row : functions(store, filter))
        actual[std::string(store.string(row.function.name))] = {row.self, row.total};
    CHECK(actual == expected);
}

void check_lines(const Store& store, const Model& model, const Filter& filter) {
    std::map<std::uint32_t, std::pair<Weight, Weight>> expected;
    model.for_each(filter, [&](const Sample& sample) {
        std::set<std::uint32_t> seen;
        std::uint32_t leaf = 0;
        for (const auto& [name, line] : model.frames(sample)) {
            seen.insert(line);
            leaf = line;
        }
        for (const std::uint32_t line : seen) expected[line].second += sample.weight;
        expected[leaf].first += sample.weight;
    });
    expected.erase(0);
    std::map<std::uint32_t, std::pair<Weight, Weight>> actual;
    for (const LineRow& row : line_heat(store, filter, "all.cc")) actual[row.line] = {row.self, row.total};
    CHECK(actual == expected);
}

void check_rest(const Store& store, const Model& model, const Filter& filter) {
    std::map<std::uint32_t, Weight> by_tid;
    Weight unknown;
    model.for_each(filter, [&](const Sample& sample) {
        by_tid[tid_of(sample.thread)] += sample.weight;
        if (model.frames(sample).back().first[0] == '[') unknown += sample.weight;
    });
    std::map<std::uint32_t, Weight> actual;
    for (const ThreadRow& row : thread_summary(store, filter)) actual[store.threads()[row.thread].tid] = row.weight;
    CHECK(actual == by_tid);
    CHECK(unresolved(store, filter) == unknown);
    Weight sum;
    for (const Weight& slice : histogram(store, filter, 7)) sum += slice;
    Weight all;
    for (const auto& [tid, weight] : by_tid) all += weight;
    CHECK(sum == all);
}

void check_pruning(const Store& store, const Filter& filter, const std::map<Path, std::pair<Weight, Weight>>& whole) {
    for (const TreeOptions& options : {TreeOptions{.min_share = 0.02}, TreeOptions{.max_nodes = 25}}) {
        const CallTree tree = call_tree(store, filter, options);
        if (options.max_nodes != 0) CHECK(tree.nodes.size() == std::min<std::size_t>(25, whole.size()));
        std::vector<Weight> shown(tree.nodes.size());
        std::vector<std::uint32_t> children(tree.nodes.size());
        for (std::size_t i = tree.nodes.size(); i-- > 1;) {
            shown[tree.nodes[i].parent] += tree.nodes[i].total;
            ++children[tree.nodes[i].parent];
        }
        for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
            const CallTree::Node& node = tree.nodes[i];
            CHECK((node.self.weight + shown[i].weight == node.total.weight) == (node.pruned_children == 0));
        }
        for (const auto& [path, weights] : tree_of_store(store, tree)) CHECK(whole.at(path) == weights);
    }
}

class Driver {
public:
    explicit Driver(std::uint64_t seed) : random_(seed) {}

    void run() {
        for (int step = 0; step < 12; ++step) {
            send_batch();
            if (pick(3) == 0) learn_symbols();
            const Filter filter = random_filter();
            const auto whole = tree_of_model(model_, filter);
            CHECK(tree_of_store(store_, call_tree(store_, filter)) == whole);
            check_functions(store_, model_, filter);
            check_lines(store_, model_, filter);
            check_rest(store_, model_, filter);
            check_pruning(store_, filter, whole);
        }
    }

private:
    int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }

    void begin_epoch() {
        locations_.clear();
        threads_.clear();
        events_.clear();
        const wire::Id app = maker_.module("/usr/bin/app", "app-id");
        // Another order in each epoch.
        std::vector<int> order(address_count);
        for (int i = 0; i < address_count; ++i) order[static_cast<std::size_t>(i)] = i;
        std::ranges::shuffle(order, random_);
        for (const int address : order) locations_[address] = maker_.location(app, static_cast<std::uint64_t>(address));
        const wire::Id processes[] = {maker_.process(100), maker_.process(101)};
        for (int i = 0; i < thread_count; ++i) threads_[i] = maker_.thread(processes[i / 3], tid_of(i));
        events_[0] = maker_.event("cycles", "units");
        events_[1] = maker_.event("faults", "units");
        in_epoch_ = true;
    }

    void send_batch() {
        if (!in_epoch_) begin_epoch();
        const int rows = pick(60);
        for (int i = 0; i < rows; ++i) {
            Sample sample;
            sample.bucket = now_ + static_cast<std::uint64_t>(pick(30));
            sample.event = pick(event_count);
            sample.thread = pick(thread_count);
            const int depth = 1 + pick(8);
            for (int level = 0; level < depth; ++level)
                sample.addresses.push_back(level * 5 + (pick(4) == 0 ? pick(5) : 0));
            sample.weight = {static_cast<std::uint64_t>(1 + pick(3)), static_cast<std::uint64_t>(1 + pick(1000))};
            std::vector<wire::Id> path;
            for (const int address : sample.addresses) path.push_back(locations_[address]);
            maker_.row(sample.bucket, events_[sample.event], threads_[sample.thread], maker_.stack(path),
                       static_cast<std::uint32_t>(sample.weight.samples), sample.weight.weight,
                       static_cast<std::uint32_t>(pick(4)));
            model_.samples.push_back(std::move(sample));
        }
        now_ += 25;
        in_epoch_ = pick(4) != 0;
        REQUIRE(store_.apply(in_epoch_ ? maker_.take() : maker_.take_and_end_epoch()));
        symbolize(store_, model_.known);
    }

    void learn_symbols() {
        for (int i = 0; i < 10; ++i) {
            const auto address = static_cast<std::uint64_t>(pick(address_count));
            std::vector<KnownFrame> frames;
            for (int depth = pick(3); depth >= 0; --depth)
                frames.push_back(
                    {"f" + std::to_string(pick(12)), "all.cc", 1 + static_cast<std::uint32_t>(pick(9)), true});
            frames.back().inlined = false;
            if (pick(8) == 0)
                model_.known.erase(address);
            else
                model_.known[address] = frames;
        }
        store_.forget_frames({});
        symbolize(store_, model_.known);
    }

    Filter random_filter() {
        Filter filter;
        if (pick(2) == 0) filter.event = 1 + static_cast<EventId>(pick(event_count));
        if (pick(2) == 0) {
            filter.start_ns = static_cast<std::uint64_t>(pick(300)) * 10'000'000 + static_cast<std::uint64_t>(pick(2));
            filter.end_ns = filter.start_ns + static_cast<std::uint64_t>(pick(200)) * 10'000'000;
        }
        if (pick(4) == 0) filter.pids = {100 + static_cast<std::uint32_t>(pick(2))};
        if (pick(4) == 0) filter.tids = {tid_of(pick(thread_count)), tid_of(pick(thread_count))};
        return filter;
    }

    std::mt19937_64 random_;
    BatchMaker maker_;
    Store store_;
    Model model_;
    std::map<int, wire::Id> locations_, threads_, events_;
    std::uint64_t now_ = 5;
    bool in_epoch_ = false;
};

}  // namespace

TEST_CASE("a store agrees with a list of samples in random histories") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        INFO("seed " << seed);
        Driver(seed).run();
    }
}

}  // namespace flamewire::profile

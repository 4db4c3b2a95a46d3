// Makes passes over the file in memory: first everything that samples refer to, which can follow them in the file, then
// the samples. protozero reports malformed input by exceptions, which are caught here.
#include "profile/formats/pprof_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/import_names.h"
#include "profile/formats/pprof.h"
#include "profile/formats/pprof_messages.h"
#include "symbol/files/code_file.h"

namespace flamewire::profile {
namespace {

using namespace pprof_file;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint64_t max_file_bytes = std::uint64_t{2} << 30;

// The parts of a mapping that addresses and names need.
struct Range {
    std::uint64_t start = 0, offset = 0;
    wire::Id module = 0;
    ImportedModule name;
    std::string_view build_id{};             // hexadecimal digits
    const symbol::CodeFile* code = nullptr;  // set by find_file(); nullptr: not on this machine
    bool searched = false;

    // pprof does not adjust addresses of such mappings, and neither does Flamewire: they are addresses of the file.
    [[nodiscard]] bool adjusted() const { return start == 0 && offset == 0; }
};
// The location ids of a profile.proto location in the recording, innermost first. A bare address has two: one as the
// running frame and one as a caller.
struct Place {
    std::vector<wire::Id> frames;
    wire::Id caller = 0;
    bool kernel = false;
};
// Converts a column of values to weights of an event. `count`: the column with the number of samples.
struct Column {
    wire::Id event = 0;
    std::optional<std::size_t> count;
    std::uint64_t scale = 1;
};

std::uint64_t nanoseconds_of(std::string_view unit) {
    if (unit == pprof_nanoseconds || unit == "ns" || unit == "nanosecond") return 1;
    if (unit == "microseconds" || unit == "us" || unit == "microsecond") return 1'000;
    if (unit == "milliseconds" || unit == "ms" || unit == "millisecond") return 1'000'000;
    if (unit == "seconds" || unit == "s" || unit == "second") return 1'000'000'000;
    return 0;
}

class Reader {
public:
    Reader(ImportJob& job, std::string_view file) : job_(job), file_(file) {}

    Result<bool> run() {
        // The string table comes first: all other messages refer to strings by index.
        bool whole = pass([&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(6)) return in.skip();
            texts_.add(view_of(in));
        });
        whole = pass([&](pbf_reader& in) { header(in); }) && whole;
        if (types_.empty()) return fail(ErrorCode::invalid, "the pprof profile has no sample type: it is incomplete");
        start();
        whole = pass([&](pbf_reader& in) { tables(in); }) && whole;
        Result<bool> done = true;
        std::uint64_t samples = 0;
        constexpr std::uint64_t seldom = 4096;
        const auto each_sample = [&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(2) || !done) return in.skip();
            const std::string_view one = view_of(in);
            done = sample(one);
            if (++samples % seldom == 0) job_.progress(static_cast<std::uint64_t>(one.data() - file_.data()));
        };
        whole = pass(each_sample) && whole;
        if (!done) return done;
        notes(whole);
        return true;
    }

private:
    // Calls each(reader) for every field of the file. False: the file is damaged or ends inside a field.
    template <class Each>
    bool pass(Each each) {
        try {
            pbf_reader in = message(file_);
            while (in.next()) each(in);
            return true;
        } catch (const protozero::exception&) {
            return false;
        }
    }

    void header(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(1):
                types_.push_back(read_sample_type(view_of(in), texts_));
                break;
            case varint(9):
                time_ns_ = in.get_int64();
                break;
            case varint(13):
                comments_.push_back(texts_.at(in.get_int64()));
                break;
            case bytes(13):
                for (const std::int64_t index : in.get_packed_int64()) comments_.push_back(texts_.at(index));
                break;
            case varint(14):
                default_type_ = texts_.at(in.get_int64());
                break;
            default:
                in.skip();
        }
    }

    void start() {
        wire::Recording about;
        about.start_ns = import_moment_ns;
        constexpr std::string_view target = "target: ";
        for (const std::string_view comment : comments_)
            if (comment.starts_with(target)) about.target = comment.substr(target.size());
        builder_ = &job_.begin(std::move(about), std::max<std::int64_t>(time_ns_, 0));
        columns_.resize(types_.size());
        // The file's default sample type becomes the first event.
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (types_[i].type == default_type_ && !default_type_.empty() && !counts_only(i)) add_column(i);
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (columns_[i].event == 0 && !counts_only(i)) add_column(i);
        row_.bucket = import_moment_ns / wire::default_bucket_ns;
    }

    [[nodiscard]] bool is_count(std::size_t i) const { return types_[i].unit == "count"; }
    // Returns whether the column only gives the number of samples for the next column's value.
    [[nodiscard]] bool counts_only(std::size_t i) const {
        if (!is_count(i) || i + 1 == types_.size()) return false;
        const std::string_view type = types_[i].type, next = types_[i + 1].type;
        if (type == "samples" || type == "sample") return !is_count(i + 1) || types_.size() == 2;
        return type.ends_with("_samples") && type.substr(0, type.size() - 8) == next;
    }

    void add_column(std::size_t i) {
        Column& column = columns_[i];
        const std::string_view type = types_[i].type.empty() ? "value" : types_[i].type;
        column.scale = nanoseconds_of(types_[i].unit);
        column.event = builder_->event(type, column.scale != 0        ? "ns"
                                             : types_[i].unit.empty() ? type
                                             : is_count(i)            ? type
                                                                      : types_[i].unit);
        if (column.scale == 0) column.scale = 1;
        if (is_count(i) && !(i > 0 && counts_only(i - 1)))
            column.count = i;
        else if (i > 0 && is_count(i - 1))
            column.count = i - 1;
    }

    void tables(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(3):
                mapping(read_mapping(view_of(in), texts_));
                break;
            case bytes(4):
                location_messages_.push_back(view_of(in));
                break;
            case bytes(5): {
                const pprof_file::Function function = read_function(view_of(in), texts_);
                functions_[function.id] = function;
                break;
            }
            default:
                in.skip();
        }
    }

    void mapping(const Mapping& mapping) {
        Range& range = mappings_[mapping.id];
        range = {mapping.start, mapping.offset, 0, module_of_name(mapping.file), mapping.build_id};
        if (!range.name.path.empty() || !mapping.build_id.empty())
            range.module = builder_->module(range.name.kind, range.name.path, build_id_of(mapping.build_id));
    }

    void place(const Location& location) {
        const auto known = mappings_.find(location.mapping);
        static const Range nowhere;
        if (known != mappings_.end() && location.lines.empty()) find_file(known->second);
        const Range& range = known == mappings_.end() ? nowhere : known->second;
        Place& place = places_[location.id];
        place.frames.clear();
        place.kernel = range.name.kind == wire::ModuleKind::kernel;
        for (std::size_t i = 0; i < location.lines.size(); ++i)
            named(place, range, location.lines[i], i + 1 < location.lines.size());
        if (place.frames.empty()) addressed(place, range, location.address);
    }

    void named(Place& place, const Range& range, const Line& line, bool inlined) {
        const auto function = functions_.find(line.function);
        if (function == functions_.end() || function->second.name.empty()) return;
        std::string with_module;
        std::string_view name = function->second.name;
        if (!range.name.kernel_module.empty())
            name = with_module = fmt::format("{} [{}]", name, range.name.kernel_module);
        place.frames.push_back(builder_->location(
            {.function = name,
             .file = function->second.file,
             .line = static_cast<std::uint32_t>(line.line <= std::numeric_limits<std::uint32_t>::max() ? line.line : 0),
             .module = range.module,
             .flags = inlined ? wire::location_flag::inlined : 0}));
    }

    // Finds the file with the code, once per module.
    void find_file(Range& range) {
        if (std::exchange(range.searched, true) || range.adjusted() || range.module == 0 ||
            range.name.kind != wire::ModuleKind::file)
            return;
        const auto [known, added] = code_.try_emplace(range.module);
        if (added) {
            symbol::ModuleIdentity identity;
            identity.path = range.name.path;
            identity.build_id = build_id_of(range.build_id);
            known->second = symbol::read_code_file(job_.module_file(identity));
            if (!known->second) missing_.push_back(range.name.path);
        }
        if (known->second) range.code = &*known->second;
    }

    // The ELF virtual address of a memory address. A mapping gives the file offset, and the file's segments convert it.
    // Without the file, returns the most likely address.
    static std::uint64_t file_address(const Range& range, std::uint64_t address) {
        if (range.adjusted() || address < range.start || (range.code != nullptr && range.code->fixed)) return address;
        const std::uint64_t offset = address - range.start + range.offset;
        if (range.code != nullptr)
            if (const auto found = range.code->address_of(offset)) return *found;
        return range.code == nullptr && range.start < symbol::fixed_programs_end ? address : offset;
    }

    void addressed(Place& place, const Range& range, std::uint64_t address) {
        if (range.module == 0 && address == 0) {
            place.frames.push_back(builder_->location({.function = "[unknown]"}));
            return;
        }
        if (place.kernel)
            address -= address >= range.start ? range.start : 0;
        else
            address = file_address(range, address);
        const wire::Id module =
            range.name.kernel_module.empty() ? range.module : module_of_addresses(*builder_, range.name);
        place.frames.push_back(builder_->location(module, address, 0));
        place.caller = builder_->location(module, address + 1, wire::location_flag::return_address);
    }

    struct Labels {
        std::uint32_t pid = 0, tid = 0;
        std::string_view thread, process, container, pod, cgroup;
        bool has_tid = false;
    };

    void label(const Label& label, Labels& labels) {
        const auto& [key, string, number] = label;
        if (key == "pid" || key == "process_id" || key == "process id") {
            labels.pid = label.whole();
        } else if (key == "tid" || key == "thread_id" || key == "thread id") {
            labels.tid = label.whole();
            labels.has_tid = labels.tid != 0;
        } else if (key == "thread" || key == "thread_name" || key == "thread name" || key == "comm" ||
                   key == "thread_comm") {
            labels.thread = string;
        } else if (key == "process" || key == "process_name" || key == "process name" || key == "process_comm") {
            labels.process = string;
        } else if (key == "container_id") {
            labels.container = string;
        } else if (key == "cgroup_path") {
            labels.cgroup = string;
        } else if (key == "pod_uid") {
            labels.pod = string;
        } else if (other_labels_.size() < 8) {
            other_labels_.insert(key);
        }
    }

    wire::Id thread(Labels labels) {
        // Threads are distinguished by number. Threads that only have a name get a number.
        if (!labels.has_tid && !labels.thread.empty())
            labels.tid =
                invented_.try_emplace({labels.pid, labels.thread}, narrow32(invented_.size() + 1)).first->second;
        // The pod of a process is part of its cgroup path. It cannot be stored elsewhere.
        if (!labels.pod.empty() && parse_cgroup_path(labels.cgroup).pod_uid != labels.pod && other_labels_.size() < 8)
            other_labels_.insert("pod_uid");
        const bool labeled = !labels.process.empty() || !labels.container.empty() || !labels.cgroup.empty();
        if (labeled && named_processes_.insert(labels.pid).second) {
            wire::Process process;
            process.pid = labels.pid;
            process.comm = builder_->string(labels.process);
            process.container_id = builder_->string(labels.container);
            process.cgroup = builder_->string(labels.cgroup);
            (void)builder_->process(process);
        }
        return builder_->thread(labels.pid, labels.tid, labels.thread);
    }

    const Place& place_of(std::uint64_t id) {
        if (!location_messages_.empty()) {
            for (const std::string_view one : std::exchange(location_messages_, {})) place(read_location(one));
        }
        static const Place none;
        const auto found = places_.find(id);
        return found == places_.end() ? none : found->second;
    }

    wire::Id stack(const std::vector<std::uint64_t>& ids) {
        wire::Id stack = 0;
        // A sample can list many locations, each of which stands for many frames. So the loop stops soon after the
        // stack is full.
        for (std::size_t from = ids.size(); from-- > 0;) {
            const bool is_full = builder_->is_full(stack);
            const Place& place = place_of(ids[from]);
            const bool called_kernel = from > 0 && !place.kernel && place_of(ids[from - 1]).kernel;
            if (place.caller != 0 && from > 0 && !called_kernel)
                stack = builder_->stack(stack, place.caller);
            else
                for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame)
                    stack = builder_->stack(stack, *frame);
            if (is_full) break;
        }
        return stack;
    }

    Result<bool> sample(std::string_view one) {
        read_sample(one, texts_, sample_);
        const std::vector<std::uint64_t>& values = sample_.values;
        Labels labels;
        for (const Label& one_label : sample_.labels) label(one_label, labels);
        row_.stack = stack(sample_.locations);
        row_.thread = thread(labels);
        for (std::size_t i = 0; i < std::min(values.size(), columns_.size()); ++i) {
            const Column& column = columns_[i];
            if (column.event == 0) continue;
            const std::uint64_t count = column.count && *column.count != i ? values[*column.count] : 0;
            if (values[i] == 0 && count == 0) continue;
            if (static_cast<std::int64_t>(values[i]) < 0) {
                ++negative_;
                continue;
            }
            row_.event = column.event;
            row_.weight = values[i] > std::numeric_limits<std::int64_t>::max() / column.scale
                              ? std::numeric_limits<std::int64_t>::max()
                              : values[i] * column.scale;
            const std::uint64_t samples = !column.count ? 1 : *column.count == i ? values[i] : count;
            row_.count = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(samples, 1, std::numeric_limits<std::uint32_t>::max()));
            TRY(builder_->add(row_));
        }
        return true;
    }

    void notes(bool whole) {
        builder_->note("import-no-times", "A pprof profile has sums without times: it is shown as one moment.");
        if (!whole)
            builder_->note("import-truncated", "The file ends too early or is damaged: the part before is shown.");
        if (!missing_.empty()) note_missing();
        if (!other_labels_.empty()) {
            std::string list;
            for (const std::string_view key : other_labels_)
                list += fmt::format("{}{:.40}", list.empty() ? "" : ", ", key);
            builder_->note("import-labels", fmt::format("Labels of samples that are not shown: {}.", list));
        }
        if (negative_ != 0)
            builder_->note(
                "import-negative",
                fmt::format("{} values are negative (a difference of profiles) and were left out.", negative_));
    }

    void note_missing() {
        constexpr std::size_t most = 5;
        std::string list;
        for (std::size_t i = 0; i < std::min(missing_.size(), most); ++i)
            list += fmt::format("{}{:.200}", i == 0 ? "" : ", ", missing_[i]);
        if (missing_.size() > most) list += ", …";
        builder_->note("import-modules",
                       fmt::format("Files that are not on this machine: {}. Their addresses are estimates.", list),
                       "give the files with --binary FILE or --sysroot DIR and import again");
    }

    ImportJob& job_;
    std::string_view file_;
    RecordingBuilder* builder_ = nullptr;
    Texts texts_;
    std::vector<std::string_view> comments_, location_messages_;
    std::vector<SampleType> types_;
    std::vector<Column> columns_;
    std::string_view default_type_;
    std::int64_t time_ns_ = 0;
    std::unordered_map<std::uint64_t, Range> mappings_;
    std::unordered_map<wire::Id, std::optional<symbol::CodeFile>> code_;  // by module; references stay valid
    std::vector<std::string_view> missing_;                               // paths of modules whose file was not found
    std::unordered_map<std::uint64_t, pprof_file::Function> functions_;
    std::unordered_map<std::uint64_t, Place> places_;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> invented_;
    std::set<std::uint32_t> named_processes_;
    std::set<std::string_view> other_labels_;
    Sample sample_;
    wire::Row row_;
    std::uint64_t negative_ = 0;
};

bool is_sample_type(std::string_view one) {
    pbf_reader in = message(one);
    while (in.next()) {
        if (in.tag_and_type() != varint(1) && in.tag_and_type() != varint(2)) return false;
        in.skip();
    }
    return true;
}

}  // namespace

bool recognises_pprof(std::string_view beginning) {
    bool has_type = false;
    try {
        pbf_reader in = message(beginning);
        while (in.next()) {
            const std::uint32_t tag = in.tag();
            const bool numbers = (tag >= 7 && tag <= 10) || (tag >= 12 && tag <= 15);
            const bool packed = tag == 13;
            const bool right = in.wire_type() == (numbers ? pbf_wire_type::varint : pbf_wire_type::length_delimited) ||
                               (packed && in.wire_type() == pbf_wire_type::length_delimited);
            if (tag > 15 || !right) return false;
            if (tag == 1) {
                if (!is_sample_type(view_of(in))) return false;
                has_type = true;
            } else {
                in.skip();
            }
        }
        return has_type;
    } catch (const protozero::end_of_buffer_exception&) {
        // The beginning can be cut inside a field, and so can a file.
        return has_type;
    } catch (const protozero::exception&) {
        return false;
    }
}

Result<bool> import_pprof(ImportJob& job) {
    if (job.source().size() > max_file_bytes)
        return fail(ErrorCode::too_large, "the pprof profile has more than 2 GiB; take a shorter one");
    TRY(job.make_room(job.source().size()));
    std::string file(job.source().size(), '\0');
    file.resize(TRY(job.source().read_at(0, file)));
    try {
        return Reader(job, file).run();
    } catch (const protozero::exception&) {
        return fail(ErrorCode::invalid, "the pprof profile is damaged");
    }
}

}  // namespace flamewire::profile

// The result of importing a text, as a store that received it over the wire.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/formats/collapsed.h"
#include "profile/formats/import.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

class TextSource final : public ImportSource {
public:
    explicit TextSource(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] std::uint64_t size() const override { return text_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        if (offset >= text_.size()) return std::size_t{0};
        const std::size_t size = std::min<std::size_t>(into.size(), text_.size() - offset);
        std::memcpy(into.data(), text_.data() + offset, size);
        return size;
    }

private:
    std::string text_;
};

class ImportedText final : public ImportJob {
public:
    // Uses the format that the content has, unless one is given. `files`: contents of modules, by path.
    explicit ImportedText(std::string text, std::string_view format = {}, std::map<std::string, std::string> files = {})
        : source_(text), name_("file"), files_(std::move(files)) {
        const ImportFormat* by = recognise_import(text);
        recognised = by == nullptr ? "" : by->name;
        for (const ImportFormat& one : import_formats())
            if (one.name == format) by = &one;
        if (by == nullptr) return;
        Result<bool> done = by->import(*this);
        if (done && builder_) done = builder_->finish("imported");
        if (!done) problem = done.error().message;
    }
    ImportSource& source() override { return source_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    RecordingBuilder& begin(wire::Recording about, std::int64_t realtime_ns) override {
        target = about.target;
        realtime = realtime_ns;
        return builder_.emplace(
            wire::RecordingId{1}, std::move(about), realtime_ns, [this](wire::Batch batch) -> Result<bool> {
                notices.insert(notices.end(), batch.notices.begin(), batch.notices.end());
                wire::learn_periods(batch, periods_);
                const wire::Batch arrived = TRY(wire::decode(as_bytes_view(wire::encode(batch, periods_)), theirs_));
                TRY(store.apply(arrived));
                return true;
            });
    }
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity& module) override {
        const auto found = files_.find(module.path);
        return found == files_.end() ? std::string() : found->second;
    }
    void progress(std::uint64_t /*read_bytes*/) override {}

    // Like collapsed(), for the event with this name, or for all.
    [[nodiscard]] std::string lines(std::string_view event = {}, bool weights = false) const {
        Filter filter;
        for (EventId id = 1; id < store.events().size(); ++id)
            if (store.events()[id].name == event) filter.event = id;
        return collapsed(store, filter, {.weights = weights});
    }
    [[nodiscard]] std::string events() const {
        std::string all;
        for (EventId id = 1; id < store.events().size(); ++id)
            all += store.events()[id].name + "/" + store.events()[id].unit + " ";
        return all;
    }
    [[nodiscard]] const Function* function(std::string_view name) const {
        const Store::Tables& tables = store.tables();
        for (FunctionId id = 1; id < tables.functions.size(); ++id)
            if (tables.strings[tables.functions[id].name] == name) return &tables.functions[id];
        return nullptr;
    }
    [[nodiscard]] std::string module_of(std::string_view name) const {
        const Function* one = function(name);
        return one == nullptr ? "?" : std::string(store.string(one->module));
    }
    [[nodiscard]] std::string file_of(std::string_view function) const {
        const Store::Tables& tables = store.tables();
        for (LocationId id = 1; id < tables.locations.size(); ++id)
            for (const auto& frame : tables.frames_of(id))
                if (tables.strings[tables.functions[frame.function].name] == function)
                    return std::string(tables.strings[frame.file]);
        return "?";
    }
    [[nodiscard]] std::string build_id_of(std::string_view path) const {
        for (const Module& module : store.tables().modules)
            if (module.identity.path == path) return module.identity.build_id;
        return "?";
    }
    [[nodiscard]] bool noted(std::string_view code) const {
        return std::ranges::find(notices, code, &wire::Notice::code) != notices.end();
    }

    std::string recognised, target, problem;
    std::int64_t realtime = 0;
    Store store;
    std::vector<wire::Notice> notices;

private:
    TextSource source_;
    std::string name_;
    std::map<std::string, std::string> files_;
    std::optional<RecordingBuilder> builder_;
    wire::EventPeriods periods_, theirs_;
};

}  // namespace flamewire::profile

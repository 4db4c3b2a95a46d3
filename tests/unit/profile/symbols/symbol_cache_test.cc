// The symbol cache of a session: collected from a store, encoded, decoded, and used in another store.
#include "profile/symbols/symbol_cache.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"
#include "wire/frame.h"

namespace flamewire::profile {
namespace {

using wire::location_flag::kernel_mode;
using wire::location_flag::return_address;

// main -> work -> leaf of app, which called the kernel. app's 0x200 is looked up as a return address and as a plain
// one.
Store recorded(BatchMaker& maker) {
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id app = maker.module("/usr/bin/app", "id");
    const wire::Id kernel = maker.module("[kernel]", "kernel-id", wire::ModuleKind::kernel);
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, event, thread,
              maker.stack({maker.location(app, 0x101, return_address), maker.location(app, 0x201, return_address),
                           maker.location(app, 0x201), maker.location(kernel, 0xabc, kernel_mode),
                           maker.location(kernel, 0xfffffffffffff000, kernel_mode)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    return store;
}

std::vector<CachedModule> named(Store& store) {
    symbolize(store, {{0x100, {{"main", "main.cc", 10, false}}},
                      {0x200, {{"inner", "work.h", 5, true}, {"work", "work.cc", 20, false}}},
                      {0x201, {{"leaf", "", 0, false}}},
                      {0xabc, {{"read_it [ext4]", "", 0, false}}}});
    std::vector<CachedModule> modules;
    for (SymbolizedModule& module : symbolized_modules(store)) {
        module.cached.report.quality = symbol::Quality::debug_info;
        module.cached.report.file = "/opt/" + store.modules()[module.module].name;
        module.cached.report.found = symbol::FoundBy::sysroot;
        modules.push_back(std::move(module.cached));
    }
    return modules;
}

std::string trees(const Store& store) {
    return show(store, call_tree(store, {})) + show(store, call_tree(store, {}, {.merge = MergeBy::line}));
}

}  // namespace

TEST_CASE("cached symbols name another store of the same stream") {
    BatchMaker maker, again_maker;
    Store store = recorded(maker);
    const std::vector<CachedModule> modules = named(store);
    REQUIRE(modules.size() == 2);
    CHECK(modules[0].addresses.size() == 3);  // the kernel's second address has no name
    CHECK(modules[1].addresses.size() == 1);

    const EncodedSymbolCache encoded = encode_symbol_cache(modules);
    CHECK(encoded.left_out == 0);
    const std::vector<CachedModule> back = decode_symbol_cache(as_bytes_view(encoded.bytes)).value();
    REQUIRE(back.size() == 2);
    CHECK(back[0].report.quality == symbol::Quality::debug_info);
    CHECK(back[0].report.file == "/opt/app");
    CHECK(back[0].report.found == symbol::FoundBy::sysroot);
    for (std::size_t i = 0; i < 2; ++i) CHECK(back[i].identity.kind == modules[i].identity.kind);

    // Each quality, by its number in docs/kept.proto.
    for (const auto& [quality, number] : {std::pair{symbol::Quality::linker_map, '\x01'},
                                          {symbol::Quality::symbols, '\x03'},
                                          {symbol::Quality::debug_info, '\x04'},
                                          {symbol::Quality::go_table, '\x05'}}) {
        std::vector<CachedModule> one = {modules[0]};
        one[0].report.quality = quality;
        const EncodedSymbolCache kept = encode_symbol_cache(one);
        CHECK(decode_symbol_cache(as_bytes_view(kept.bytes)).value()[0].report.quality == quality);
        const std::string message = wire::decompress(as_bytes_view(kept.bytes)).value();
        CHECK(message.find(std::string("\x38") + number) != std::string::npos);  // field 7, a varint
    }

    // The identifying fields of a module.
    std::vector<CachedModule> single = {modules[0]};
    single[0].identity.boot_id = "boot";
    single[0].identity.size = 4711;
    single[0].identity.mtime_ns = -5;
    const symbol::ModuleIdentity identity =
        decode_symbol_cache(as_bytes_view(encode_symbol_cache(single).bytes)).value().at(0).identity;
    CHECK(identity.path == "/usr/bin/app");
    CHECK(identity.build_id == "id");
    CHECK(identity.boot_id == "boot");
    CHECK(identity.size == 4711);
    CHECK(identity.mtime_ns == -5);

    Store other = recorded(again_maker);
    CHECK(trees(other) != trees(store));
    for (const PendingModule& pending : other.take_pending()) {
        const CachedModule* cached = find_cached(back, other.modules()[pending.module].identity);
        REQUIRE(cached != nullptr);
        other.set_frames(pending, cached->resolve(pending.addresses));
    }
    CHECK(trees(other) == trees(store));
    // A second round gives the same.
    std::vector<CachedModule> third;
    for (SymbolizedModule& module : symbolized_modules(other)) third.push_back(std::move(module.cached));
    for (CachedModule& module : third) module.report = find_cached(back, module.identity)->report;
    CHECK(encode_symbol_cache(third).bytes == encoded.bytes);

    symbol::ModuleIdentity rebuilt = modules[0].identity;
    rebuilt.build_id = "another";
    CHECK(find_cached(back, rebuilt) == nullptr);
}

TEST_CASE("missing frames are taken from the other source") {
    BatchMaker maker;
    Store store = recorded(maker);
    const CachedModule app = named(store).front();
    const std::vector<CodeAddress> asked = {{0x999, false}, {0x201, false}, {0x201, true}};
    const symbol::Resolved kept = app.resolve(asked);
    symbol::Resolved found;
    found.strings = {"", "here", "better"};
    found.first = {0, 1, 1, 2};
    found.frames = {{1, 0, 7, false}, {2, 0, 8, false}};
    const auto names = [](const symbol::Resolved& resolved) {
        std::string text;
        for (std::size_t i = 0; i + 1 < resolved.first.size(); ++i, text += ';')
            for (std::uint32_t f = resolved.first[i]; f < resolved.first[i + 1]; ++f)
                text += resolved.strings[resolved.frames[f].function] + " ";
        return text;
    };
    CHECK(names(kept) == ";leaf ;inner work ;");
    CHECK(names(coalesce(found, kept)) == "here ;leaf ;better ;");
    CHECK(names(coalesce(kept, found)) == "here ;leaf ;inner work ;");
}

TEST_CASE("a damaged symbol cache is refused") {
    BatchMaker maker;
    Store store = recorded(maker);
    const std::string bytes = encode_symbol_cache(named(store)).bytes;
    const std::string message = wire::decompress(as_bytes_view(bytes)).value();
    for (std::size_t size = 1; size < message.size(); ++size)
        (void)decode_symbol_cache(as_bytes_view(wire::compress(message.substr(0, size))));
    for (std::size_t at = 0; at < message.size(); ++at) {
        for (const char change : {'\x01', '\x7f', '\x80', '\xff'}) {
            std::string damaged = message;
            damaged[at] = static_cast<char>(damaged[at] ^ change);
            const auto modules = decode_symbol_cache(as_bytes_view(wire::compress(damaged)));
            if (!modules) continue;
            // Whatever it contains now, a store can use it.
            for (const CachedModule& module : *modules) {
                CHECK(module.frames.first.size() == module.addresses.size() + 1);
                CHECK(module.resolve(module.addresses).frames.size() == module.frames.frames.size());
            }
        }
    }
    CHECK(decode_symbol_cache(as_bytes_view(bytes.substr(0, bytes.size() - 1))).error().code == ErrorCode::invalid);
    CHECK_FALSE(decode_symbol_cache({}));
}

}  // namespace flamewire::profile

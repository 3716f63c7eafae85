;; Requests a gigabyte and traps without it. Returns pairs as two values.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "vendor.openwop.misbehaving")
  (data (i32.const 64) "vendor.openwop.misbehaving.memory-bomb")
  (data (i32.const 128) "{\"outcome\":\"completed\",\"output\":null}")

  (func (export "openwop_abi_version") (result i32) (i32.const 1))
  (func (export "openwop_pack_name") (result i32 i32) (i32.const 0) (i32.const 26))
  (func (export "openwop_node_count") (result i32) (i32.const 1))
  (func (export "openwop_node_id_at") (param i32) (result i32 i32)
    (i32.const 64) (i32.const 38))
  (func (export "openwop_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "openwop_free") (param i32 i32))
  (func (export "openwop_node_invoke") (param i32 i32 i32) (result i32 i32)
    (if (i32.eq (memory.grow (i32.const 16384)) (i32.const -1))
      (then (unreachable)))
    (i32.const 128) (i32.const 37)))
